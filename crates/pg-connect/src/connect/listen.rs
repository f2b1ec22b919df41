//! A connection with notifications, and with the reason for its end.

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{StreamExt, stream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, CancelToken, Client};

use super::session::message;
use super::{Raw, reach};
use crate::auth_watch::{AuthWatch, Watched};
use crate::conninfo::{ConnInfo, RequireAuth};
use crate::error::ConnectError;
use crate::socket::Address;
use crate::tls::Connector;

/// An open connection. Dropping it closes it at once, even with unanswered statements.
#[derive(Debug)]
pub struct Listening {
    /// For sending statements, `LISTEN` included.
    pub client: Client,
    /// For cancelling the running statement, over a connection of its own.
    pub canceller: Canceller,
    /// The notifications. One that arrives during a statement comes before its answer. Ends with the connection.
    pub notifications: Notifications,
    /// Why the connection has ended, in one line, as soon as it has.
    pub ended: watch::Receiver<Option<String>>,
    /// A set, because dropping that aborts the task: a server that does not answer would keep it alive forever.
    driver: JoinSet<()>,
}

impl Listening {
    /// Closes the connection, and returns when the server has received that, or after `limit`. The server then ends the
    /// session, which releases its locks.
    pub async fn close(self, limit: std::time::Duration) {
        let Self { client, mut ended, driver, .. } = self;
        drop(client);
        let _ = tokio::time::timeout(limit, ended.wait_for(Option::is_some)).await;
        drop(driver);
    }
}

/// Connects, with notifications.
///
/// # Errors
/// As for [`super::connect`].
pub async fn listen(info: &ConnInfo) -> Result<Listening, ConnectError> {
    let Raw { client, connection, canceller, .. } = Box::pin(reach(info)).await?;
    let (ears, notifications) = pair();
    let (over, ended) = watch::channel(None);
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        let mut connection = connection;
        let mut messages = pin!(stream::poll_fn(move |context| connection.poll_message(context)));
        let mut reason = None;
        while let Some(next) = messages.next().await {
            match next {
                Ok(AsyncMessage::Notification(said)) => {
                    let (channel, payload) = (said.channel().to_owned(), said.payload().to_owned());
                    ears.deliver(Notification { channel, payload, pid: said.process_id() });
                }
                Ok(_) => {}
                Err(error) => {
                    reason = Some(message(&error));
                    break;
                }
            }
        }
        over.send_replace(Some(reason.unwrap_or_else(|| "it was closed".to_owned())));
    });
    Ok(Listening { client, canceller, notifications, ended, driver })
}

/// Cancels the running statement of a connection, over a new connection to the same address with the same TLS.
#[derive(Clone)]
pub struct Canceller {
    token: CancelToken,
    address: Address,
    tls: Connector,
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        f.debug_struct("Canceller").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Canceller {
    pub(super) fn new(token: CancelToken, address: Address, tls: Connector) -> Self {
        Self { token, address, tls }
    }

    /// Sends a cancel request, and waits for at most `limit`. A request that was received may have no effect: check the
    /// statement itself.
    pub async fn cancel(&self, limit: std::time::Duration) {
        let asking = async {
            let Ok(socket) = self.address.dial().await else { return };
            // A cancel request needs no authentication, but contains a secret.
            let watch = if self.tls.is_encrypted() {
                AuthWatch::tls_alone()
            } else {
                AuthWatch::new(&RequireAuth::default(), false)
            };
            let socket = Watched::new(socket, watch);
            let _ = self.token.cancel_query_raw(socket, self.tls.clone()).await;
        };
        let _ = tokio::time::timeout(limit, Box::pin(asking)).await;
    }
}

/// Notifications of one channel that wait for the reader. Further ones are dropped, and the reader is informed: one
/// channel cannot displace the notifications of another.
const WAITING: usize = 64;

/// One notification, as `NOTIFY` or `pg_notify` sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The name of the channel.
    pub channel: String,
    /// The payload; may be empty.
    pub payload: String,
    /// The process ID of the sending backend, which may be that of this session.
    pub pid: i32,
}

/// An item from the reader's end of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// One notification, in the order of arrival.
    Notified(Notification),
    /// More notifications arrived on this channel than are kept, after those received before and in addition to later ones.
    More(String),
}

/// The reader's end of the queue. It ends with the connection.
#[derive(Debug)]
pub struct Notifications(Arc<Shared>);

/// The connection's end of the queue. Dropping it ends the reader's.
#[derive(Debug)]
struct NotificationSender(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    notifications: VecDeque<Notification>,
    more: BTreeSet<String>,
    over: bool,
}

fn pair() -> (NotificationSender, Notifications) {
    let shared = Arc::<Shared>::default();
    (NotificationSender(Arc::clone(&shared)), Notifications(shared))
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NotificationSender {
    pub(super) fn deliver(&self, said: Notification) {
        // The reader was dropped.
        if Arc::strong_count(&self.0) == 1 {
            return;
        }
        let mut waiting = self.0.waiting();
        if waiting.notifications.iter().filter(|other| other.channel == said.channel).count() < WAITING {
            waiting.notifications.push_back(said);
        } else {
            waiting.more.insert(said.channel);
        }
        drop(waiting);
        self.0.changed.notify_one();
    }
}

impl Drop for NotificationSender {
    fn drop(&mut self) {
        self.0.waiting().over = true;
        self.0.changed.notify_one();
    }
}

impl Notifications {
    /// The next item, if there is one.
    pub fn try_recv(&mut self) -> Option<Received> {
        let mut waiting = self.0.waiting();
        let said = waiting.notifications.pop_front().map(Received::Notified);
        said.or_else(|| waiting.more.pop_first().map(Received::More))
    }

    /// Waits for the next item; `None` once the connection has ended and all items were read.
    pub async fn recv(&mut self) -> Option<Received> {
        loop {
            // In this order: what arrived before the end is read.
            let over = self.0.waiting().over;
            if let Some(heard) = self.try_recv() {
                return Some(heard);
            }
            if over {
                return None;
            }
            self.0.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(channel: &str, number: usize) -> Notification {
        Notification { channel: channel.to_owned(), payload: number.to_string(), pid: 1 }
    }

    #[tokio::test]
    async fn one_channel_does_not_push_out_another() {
        let (sender, mut reader) = pair();
        for number in 0..1000 {
            sender.deliver(notification("loud", number));
        }
        sender.deliver(notification("quiet", 0));
        drop(sender);
        for number in 0..WAITING {
            assert_eq!(reader.recv().await, Some(Received::Notified(notification("loud", number))));
        }
        assert_eq!(reader.recv().await, Some(Received::Notified(notification("quiet", 0))));
        assert_eq!(reader.recv().await, Some(Received::More("loud".to_owned())));
        assert_eq!(reader.recv().await, None);
        assert_eq!(reader.recv().await, None);
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken() {
        let (sender, mut reader) = pair();
        assert_eq!(reader.try_recv(), None);
        let reads = tokio::spawn(async move { (reader.recv().await, reader.recv().await) });
        tokio::task::yield_now().await;
        sender.deliver(notification("a", 1));
        tokio::task::yield_now().await;
        drop(sender);
        assert_eq!(reads.await.unwrap(), (Some(Received::Notified(notification("a", 1))), None));
    }

    #[test]
    fn notifications_without_a_reader_are_dropped() {
        let (sender, reader) = pair();
        drop(reader);
        sender.deliver(notification("a", 1));
        assert!(sender.0.waiting().notifications.is_empty());
    }
}
