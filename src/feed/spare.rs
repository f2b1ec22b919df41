//! The second connection: open from the start, so that it is there when all connections are taken. Actions use it,
//! and between them names of advisory keys are read on it ([`super::learn`]). Each sends whole transactions in one
//! message: none is ever open between two messages, so that nobody's statement ends up in another's. Whether the
//! connection can be had or not never disturbs the poll.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::line::Line;
use crate::clock;
use crate::model::snapshot::Pooling;
use crate::model::view::{Link, View};
use crate::pg::poll::{Limits, message, open_beside, silence};
use pg_connect::Backoff;
use pg_connect::connect::Connection;
use pg_connect::conninfo::ConnInfo;

/// A connection that stood for this long was a good one.
const LASTING: Duration = Duration::from_secs(10);

/// How long to wait for an answer that any server has at once.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The connection, or why there is none; none before the first attempt.
type Slot = Option<Result<Line, String>>;

/// Keeps a connection open, and opens it again when it is lost.
#[derive(Debug)]
pub struct Spare {
    slot: watch::Receiver<Slot>,
    keeper: JoinHandle<()>,
}

impl Spare {
    /// Opens the connection in the background. While the poll, whose views these are, has lost its own, none is
    /// asked for: one that knocks is enough.
    pub fn keep(info: ConnInfo, limits: Limits, views: watch::Receiver<Arc<View>>) -> Self {
        let (sender, slot) = watch::channel(None);
        Self { slot, keeper: tokio::spawn(keep(info, limits, views, sender)) }
    }

    /// The connection. Waits while it is being opened, for at most `timeout`.
    ///
    /// # Errors
    /// Why there is none at the moment, in one line.
    pub async fn client(&self, timeout: Duration) -> Result<Arc<Client>, String> {
        let mut slot = self.slot.clone();
        let waited = tokio::time::timeout(timeout, slot.wait_for(|slot| usable(slot).is_some())).await;
        if let Ok(Ok(slot)) = waited
            && let Some(line) = usable(&slot)
        {
            return Ok(Arc::clone(&line.client));
        }
        match &*self.slot.borrow() {
            Some(Err(reason)) => Err(reason.clone()),
            _ => Err("the server does not answer".into()),
        }
    }
}

impl Spare {
    /// The connection, if it can be had without another attempt. Waits only for one that is under way, for at most `timeout`.
    ///
    /// # Errors
    /// Why there is none, in one line.
    pub async fn ready(&self, timeout: Duration) -> Result<Arc<Client>, String> {
        let mut slot = self.slot.clone();
        let _ = tokio::time::timeout(timeout, slot.wait_for(Option::is_some)).await;
        self.client(Duration::ZERO).await
    }

    /// Whether a pooler lends its session by the transaction.
    pub fn is_lent(&self) -> bool {
        usable(&self.slot.borrow()).is_some_and(|line| line.pooling == Pooling::Transactions)
    }

    /// The process that serves it; none without a connection, or where it is another one each time.
    pub fn pid(&self) -> Option<i32> {
        usable(&self.slot.borrow()).and_then(|line| line.pid)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

fn usable(slot: &Slot) -> Option<&Line> {
    slot.as_ref()?.as_ref().ok().filter(|line| !line.client.is_closed())
}

/// The process that serves a connection; none where it does not say so in time.
async fn pid(client: &Client) -> Option<i32> {
    let asked = client.simple_query("SELECT pg_catalog.pg_backend_pid()");
    let answer = tokio::time::timeout(TIMEOUT, asked).await.ok()?.ok()?;
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok()??.parse().ok(),
        _ => None,
    })
}

/// What the poll has before it; that need not be asked a second time.
async fn known(mut views: watch::Receiver<Arc<View>>) -> Option<Pooling> {
    let seen = tokio::time::timeout(TIMEOUT, views.wait_for(|view| view.snapshot.is_some())).await;
    let view = seen.ok()?.ok()?;
    Some(view.snapshot.as_ref()?.server()?.pooling)
}

/// Waits until the poll has found out that sessions are lent by the transaction.
async fn is_lent(mut views: watch::Receiver<Arc<View>>) {
    let pooling = |view: &View| Some(view.snapshot.as_ref()?.server()?.pooling);
    if views.wait_for(|view| pooling(view) == Some(Pooling::Transactions)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn keep(
    info: ConnInfo,
    limits: Limits,
    mut views: watch::Receiver<Arc<View>>,
    slot: watch::Sender<Slot>,
) {
    let mut backoff = Backoff::default();
    loop {
        let up = views.wait_for(|view| !matches!(view.link, Link::Down { .. })).await.is_ok();
        if !up {
            return;
        }
        let mut silent = false;
        match Box::pin(open_beside(&info, &limits, known(views.clone()))).await {
            Ok((Connection { client, mut driver, .. }, pooling)) => {
                let opened = clock::monotonic();
                let pid = if pooling == Pooling::Transactions { None } else { pid(&client).await };
                let line = Line { pid, client: Arc::new(client), pooling };
                let client = Arc::clone(&line.client);
                let _ = slot.send(Some(Ok(line)));
                // One is ours, and one in the slot.
                let in_use = || Arc::strong_count(&client) > 2;
                let reason = tokio::select! {
                    ended = &mut driver => match ended {
                        Ok(Err(error)) => message(&error),
                        Ok(Ok(())) | Err(_) => "the connection was closed".into(),
                    },
                    silent = silence(&client, in_use) => {
                        driver.abort();
                        silent.to_string()
                    }
                    () = is_lent(views.clone()), if pooling == Pooling::Sessions => {
                        driver.abort();
                        let _ = slot.send(None);
                        continue;
                    }
                };
                let _ = slot.send(Some(Err(reason)));
                // A server that lets us in and hangs up is not to be asked twice a second.
                if opened.elapsed() >= LASTING {
                    backoff = Backoff::default();
                }
            }
            Err(error) => {
                silent = error.is_silence();
                let _ = slot.send(Some(Err(error.to_string())));
            }
        }
        tokio::time::sleep(backoff.failed(silent)).await;
    }
}
