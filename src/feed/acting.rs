//! The second connection. It is opened at the start, so that it exists when all connections are in use. Actions use it,
//! and between actions it reads the names of advisory lock keys ([`super::learn`]). Each user sends whole transactions
//! in one message: no transaction is open between two messages, so statements of two users never share one. The poll
//! does not depend on this connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::model::snapshot::Pooling;
use crate::model::view::{ConnectionState, View};
use crate::pg::poll::{PollConnection, PollLimits, message, open_second, silence, take_back};
use crate::{action, clock};
use pg_connect::Backoff;
use pg_connect::connect::Connection;
use pg_connect::conninfo::ConnInfo;

/// A connection that lasted this long resets the backoff.
const LASTING: Duration = Duration::from_secs(10);

/// Timeout for a query that any server answers at once.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The connection, or why there is none. None: not yet attempted.
type Slot = Option<Result<OpenConnection, String>>;

#[derive(Debug)]
pub struct ActingConnection {
    slot: watch::Receiver<Slot>,
    keeper: JoinHandle<()>,
}

impl ActingConnection {
    /// Opens the connection in the background. While the poll (the sender of `views`) has no connection, none is attempted:
    /// one client that reconnects is enough.
    pub fn keep(info: ConnInfo, limits: PollLimits, views: watch::Receiver<Arc<View>>) -> Self {
        let (sender, slot) = watch::channel(None);
        Self { slot, keeper: tokio::spawn(keep(info, limits, views, sender)) }
    }

    /// Waits for the connection while it is being opened, for at most `timeout`. The error is why there is none, in one line.
    pub async fn client(&self, timeout: Duration) -> Result<Arc<Client>, String> {
        let mut slot = self.slot.clone();
        let waited = tokio::time::timeout(timeout, slot.wait_for(|slot| usable(slot).is_some())).await;
        if let Ok(Ok(slot)) = waited
            && let Some(open) = usable(&slot)
        {
            return Ok(Arc::clone(&open.client));
        }
        match &*self.slot.borrow() {
            Some(Err(reason)) => Err(reason.clone()),
            _ => Err("the server does not answer".into()),
        }
    }

    /// The connection, without a further attempt: waits only for an attempt in progress, for at most `timeout`.
    pub async fn ready(&self, timeout: Duration) -> Result<Arc<Client>, String> {
        let mut slot = self.slot.clone();
        let _ = tokio::time::timeout(timeout, slot.wait_for(Option::is_some)).await;
        self.client(Duration::ZERO).await
    }

    pub fn is_pooled(&self) -> bool {
        usable(&self.slot.borrow()).is_some_and(|open| open.pooling == Pooling::Transactions)
    }

    /// The process id of its backend. None without a connection, or if a pooler assigns a different backend each time.
    pub fn pid(&self) -> Option<i32> {
        usable(&self.slot.borrow()).and_then(|open| open.pid)
    }
}

impl Drop for ActingConnection {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

fn usable(slot: &Slot) -> Option<&OpenConnection> {
    slot.as_ref()?.as_ref().ok().filter(|open| !open.client.is_closed())
}

async fn pid(client: &Client) -> Option<i32> {
    let asked = client.simple_query("SELECT pg_catalog.pg_backend_pid()");
    let answer = tokio::time::timeout(TIMEOUT, asked).await.ok()?.ok()?;
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok()??.parse().ok(),
        _ => None,
    })
}

/// The pooling mode that the poll has already detected.
fn pooling(view: &View) -> Option<Pooling> {
    Some(view.snapshot.as_ref()?.server()?.pooling)
}

async fn known(mut views: watch::Receiver<Arc<View>>) -> Option<Pooling> {
    let seen = tokio::time::timeout(TIMEOUT, views.wait_for(|view| view.snapshot.is_some())).await;
    pooling(&*seen.ok()?.ok()?)
}

async fn until_pooled(mut views: watch::Receiver<Arc<View>>) {
    if views.wait_for(|view| pooling(view) == Some(Pooling::Transactions)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn keep(
    info: ConnInfo,
    limits: PollLimits,
    mut views: watch::Receiver<Arc<View>>,
    slot: watch::Sender<Slot>,
) {
    let mut backoff = Backoff::default();
    loop {
        let up = views.wait_for(|view| !matches!(view.link, ConnectionState::Down { .. })).await.is_ok();
        if !up {
            return;
        }
        let mut silent = false;
        match Box::pin(open_second(&info, &limits, known(views.clone()))).await {
            Ok((Connection { client, mut driver, .. }, pooling)) => {
                let opened = clock::monotonic();
                let pid = if pooling == Pooling::Transactions { None } else { pid(&client).await };
                let open = OpenConnection { pid, client: Arc::new(client), pooling };
                let client = Arc::clone(&open.client);
                let _ = slot.send(Some(Ok(open)));
                // One reference is held here, and one by the slot.
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
                    () = until_pooled(views.clone()), if pooling == Pooling::Sessions => {
                        driver.abort();
                        let _ = slot.send(None);
                        continue;
                    }
                };
                let _ = slot.send(Some(Err(reason)));
                // A server that accepts and closes connections must not be contacted twice a second.
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

#[derive(Debug, Clone)]
pub struct OpenConnection {
    pub client: Arc<Client>,
    /// The process id. `None` if unknown, or if it changes each time.
    pub pid: Option<i32>,
    pub pooling: Pooling,
}

impl OpenConnection {
    /// The poll's connection, if others may use it.
    pub(super) fn of(session: &PollConnection) -> Option<Self> {
        let server = session.server();
        Some(Self { client: session.client()?, pid: Some(server.own_pid), pooling: server.pooling })
    }
}

/// How long to wait for a connection that is being opened.
const OPENING: Duration = Duration::from_secs(2);

/// Longest wait for an answer to a check. Queries of lock names may be running on the connection, for at most 1.5 s each.
const ANSWER: Duration = Duration::from_secs(4);

#[derive(Debug, Clone)]
pub struct ActionConnections {
    pub acting: Arc<ActingConnection>,
    /// The poll's connection, used if the acting one is not available. `None` if it must not be used.
    pub poll: watch::Receiver<Option<OpenConnection>>,
}

impl action::Connections for ActionConnections {
    async fn client(&self) -> Result<Arc<Client>, String> {
        let why = match self.acting.ready(OPENING).await {
            Ok(client) if answers(&client).await => return Ok(client),
            Ok(_) => "the server does not answer".to_owned(),
            Err(why) => why,
        };
        let poll = self.poll.borrow().as_ref().map(|open| Arc::clone(&open.client));
        match poll {
            Some(client) if answers(&client).await => Ok(client),
            _ => Err(format!("no connection: {why}")),
        }
    }

    fn pids(&self) -> Vec<i32> {
        let poll = self.poll.borrow().as_ref().and_then(|open| open.pid);
        poll.into_iter().chain(self.acting.pid()).collect()
    }
}

/// Resets both sessions at exit if a pooler will pass them to other clients.
pub async fn leave(view: &View, poll: Option<OpenConnection>, acting: Option<&ActingConnection>) {
    if pooling(view) != Some(Pooling::Sessions) {
        return;
    }
    let acting = match acting {
        // It may be connecting.
        Some(acting) => acting.client(OPENING).await.ok(),
        None => None,
    };
    for client in poll.map(|open| open.client).into_iter().chain(acting) {
        take_back(&client).await;
    }
}

/// Whether the server answers. A command sent to a silent server could be executed much later, and its result would be
/// unknown until then, so nothing is sent in that case.
async fn answers(client: &Client) -> bool {
    matches!(tokio::time::timeout(ANSWER, client.check_connection()).await, Ok(Ok(())))
}
