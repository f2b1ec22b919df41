use std::fmt::{Debug, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};

use super::tally::ContestOutcome;
use super::{Environment, RunningContest};
use locktop_locks::call::CallError;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// Delay before reconnecting after the server is lost.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) trait SessionWork: Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// Longest pause between two turns, in milliseconds.
    const LONGEST: u64;

    fn turn(
        &self,
        session: usize,
        client: &Client,
        random: &mut Rng,
    ) -> impl Future<Output = Result<(), CallError>> + Send;

    /// The current numbers. `over`: all sessions have ended between two turns.
    fn outcome(
        &self,
        client: &Client,
        failures: &Failures,
        over: bool,
    ) -> impl Future<Output = Result<ContestOutcome, Error>> + Send;
}

#[derive(Debug, Default)]
pub(super) struct Failures {
    count: AtomicU64,
    first: Mutex<Option<String>>,
}

impl Failures {
    fn note(&self, error: &dyn Display) {
        self.count.fetch_add(1, Ordering::Relaxed);
        lock(&self.first).get_or_insert_with(|| error.to_string());
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn first(&self) -> Option<String> {
        lock(&self.first).clone()
    }
}

/// Also returns the data if a session panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Sessions<W> {
    work: Arc<W>,
    quit: watch::Sender<bool>,
    loops: Vec<JoinHandle<()>>,
    failures: Arc<Failures>,
    over: bool,
}

impl<W: SessionWork> Sessions<W> {
    pub(super) fn start(environment: &Environment, work: W, count: usize) -> Self {
        let (quit, told) = watch::channel(false);
        let (work, failures) = (Arc::new(work), Arc::<Failures>::default());
        let loops = (0..count).map(|number| {
            let name = format!("{}-{}", W::NAME, number + 1);
            let session = SessionLoop {
                work: Arc::clone(&work),
                info: environment.info.clone().with_application_name(&name),
                number,
                random: Rng::with_seed(
                    environment.seed ^ u64::try_from(number << 8 | W::NAME.len()).unwrap_or(0),
                ),
                quit: told.clone(),
                failures: Arc::clone(&failures),
            };
            tokio::spawn(session.run())
        });
        Self { loops: loops.collect(), work, quit, failures, over: false }
    }
}

impl<W: SessionWork> RunningContest for Sessions<W> {
    fn finish(&mut self) -> BoxFuture<'_, ()> {
        async {
            self.quit.send_replace(true);
            for session in self.loops.drain(..) {
                // A session that panicked has ended too.
                let _ = session.await;
            }
            self.over = true;
        }
        .boxed()
    }

    fn count<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<ContestOutcome, Error>> {
        self.work.outcome(client, &self.failures, self.over).boxed()
    }
}

impl<W> Drop for Sessions<W> {
    fn drop(&mut self) {
        self.loops.iter().for_each(JoinHandle::abort);
    }
}

struct SessionLoop<W> {
    work: Arc<W>,
    info: ConnInfo,
    number: usize,
    random: Rng,
    quit: watch::Receiver<bool>,
    failures: Arc<Failures>,
}

impl<W: SessionWork> SessionLoop<W> {
    async fn run(mut self) {
        while !*self.quit.borrow() {
            match connect(&self.info).await {
                Ok(connection) => self.take_turns(&connection.client).await,
                Err(error) => self.failures.note(&error),
            }
            let mut quit = self.quit.clone();
            let _ = tokio::time::timeout(PAUSE, quit.wait_for(|quit| *quit)).await;
        }
    }

    /// Runs until it is requested to end, or the connection is lost.
    async fn take_turns(&mut self, client: &Client) {
        while !*self.quit.borrow() && !client.is_closed() {
            if let Err(error) = self.work.turn(self.number, client, &mut self.random).await {
                self.failures.note(&error);
            }
            tokio::time::sleep(Duration::from_millis(self.random.u64(..W::LONGEST))).await;
        }
    }
}
