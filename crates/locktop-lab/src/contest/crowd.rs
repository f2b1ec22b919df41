//! Sessions that do one thing again and again, all at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::game::Place;
use crate::random::Random;
use locktop_locks::call::CallError;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// Until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// What a session does.
pub(super) trait Act: Send + Sync + 'static {
    /// What the sessions are called.
    const NAME: &'static str;
    /// Longest pause between two turns, in milliseconds.
    const LONGEST: u64;

    /// One turn of the n-th session.
    fn turn(
        &self,
        session: usize,
        client: &Client,
        random: &mut Random,
    ) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// What went wrong.
#[derive(Debug, Default)]
struct Trouble {
    errors: AtomicU64,
    first: Mutex<Option<String>>,
}

impl Trouble {
    fn note(&self, error: &dyn std::fmt::Display) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| error.to_string());
    }
}

/// The sessions. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Crowd {
    quit: watch::Sender<bool>,
    sessions: Vec<JoinHandle<()>>,
    trouble: Arc<Trouble>,
}

impl Crowd {
    /// Lets so many begin.
    pub(super) fn start<A: Act>(place: &Place, act: &Arc<A>, count: usize) -> Self {
        let (quit, told) = watch::channel(false);
        let trouble = Arc::<Trouble>::default();
        let sessions = (0..count).map(|number| {
            let name = format!("{}-{}", A::NAME, number + 1);
            let one = One {
                act: Arc::clone(act),
                info: place.info.clone().with_application_name(&name),
                number,
                random: Random::new(place.seed ^ u64::try_from(number << 8 | A::NAME.len()).unwrap_or(0)),
                quit: told.clone(),
                trouble: Arc::clone(&trouble),
            };
            tokio::spawn(one.run())
        });
        Self { sessions: sessions.collect(), quit, trouble }
    }

    /// Ends all between two turns.
    pub(super) async fn finish(&mut self) {
        self.quit.send_replace(true);
        for session in self.sessions.drain(..) {
            // One that panicked has ended too.
            let _ = session.await;
        }
    }

    /// How many turns failed.
    pub(super) fn errors(&self) -> u64 {
        self.trouble.errors.load(Ordering::Relaxed)
    }

    /// What the first of these said.
    pub(super) fn complaint(&self) -> Option<String> {
        self.trouble.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.sessions.iter().for_each(JoinHandle::abort);
    }
}

/// One of them.
struct One<A> {
    act: Arc<A>,
    info: ConnInfo,
    number: usize,
    random: Random,
    quit: watch::Receiver<bool>,
    trouble: Arc<Trouble>,
}

impl<A: Act> One<A> {
    async fn run(mut self) {
        while !*self.quit.borrow() {
            match connect(&self.info).await {
                Ok(connection) => self.take_turns(&connection.client).await,
                Err(error) => self.trouble.note(&error),
            }
            let mut quit = self.quit.clone();
            let _ = tokio::time::timeout(PAUSE, quit.wait_for(|quit| *quit)).await;
        }
    }

    /// Until it is told to end, or the connection is lost.
    async fn take_turns(&mut self, client: &Client) {
        while !*self.quit.borrow() && !client.is_closed() {
            if let Err(error) = self.act.turn(self.number, client, &mut self.random).await {
                self.trouble.note(&error);
            }
            tokio::time::sleep(Duration::from_millis(self.random.below(A::LONGEST))).await;
        }
    }
}
