//! A connection: when it ended, whether a quiet one is still alive, and whether a pooler is in between.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use locktop_locks::pooler::refuse_transaction_mode;
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{OpenError, PollError, PollLimits};
use crate::model::snapshot::Pooling;

/// Resolves when the connection ends.
#[derive(Debug)]
pub(super) struct PollLink {
    driver: AbortHandle,
    pub(super) ended: watch::Receiver<Option<String>>,
}

impl PollLink {
    pub(super) fn watch(driver: JoinHandle<Result<(), tokio_postgres::Error>>) -> Self {
        let (sender, ended) = watch::channel(None);
        let abort = driver.abort_handle();
        tokio::spawn(async move {
            let reason = match driver.await {
                Ok(Err(error)) => message(&error),
                Ok(Ok(())) | Err(_) => "the server closed it".to_owned(),
            };
            sender.send(Some(reason))
        });
        Self { driver: abort, ended }
    }

    /// Otherwise a server that does not answer would keep the driver alive forever.
    pub(super) fn close(&self) {
        self.driver.abort();
    }
}

impl Drop for PollLink {
    fn drop(&mut self) {
        self.close();
    }
}

/// From one answer to the next question.
const QUIET: Duration = Duration::from_secs(2);

/// Longest wait for an answer that a working server sends at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Checks that a quiet connection is still alive.
///
/// A failed network or a stopped server sends nothing: a client that only waits would notice with its next statement, and
/// TCP itself after a minute, or never if only the process is stopped.
///
/// Repeats the question while the connection is not `busy`, and returns when there is no answer. The question is the end
/// of an empty message (`Sync`): it is not visible on the server and changes nothing there.
pub(crate) async fn silence(client: &Client, busy: impl Fn() -> bool) -> PollError {
    loop {
        tokio::time::sleep(QUIET).await;
        // The user of the connection has its own limits.
        if busy() {
            continue;
        }
        match tokio::time::timeout(TIMEOUT, client.check_connection()).await {
            Ok(Ok(())) => {}
            // The connection itself reports elsewhere why it ended.
            Ok(Err(_)) => std::future::pending().await,
            Err(_) => return PollError::Timeout(TIMEOUT),
        }
    }
}

// The server process announced at login (`BackendKeyData` in PostgreSQL's documentation, "Message Flow").
// The driver does not expose it, but sends it with a cancel request. So such a request is written to a buffer that
// only locktop reads.

/// The length and code of the request precede the process, and its secret follows: four bytes each.
const REQUEST: usize = 16;
const PROCESS: std::ops::Range<usize> = 8..12;

/// The process; 0 if none was announced, which the driver does not distinguish.
pub(super) async fn announced(client: &Client) -> i32 {
    let written = Ear::default();
    // Nothing can fail here: writes are kept, and the data to read is available.
    let _ = client.cancel_token().cancel_query_raw(written.clone(), Bare).await;
    let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    // The question whether TLS is available may precede it.
    let request = bytes.len().checked_sub(REQUEST).and_then(|start| bytes.get(start..));
    let process = request.and_then(|request| request.get(PROCESS)?.try_into().ok());
    process.map_or(0, i32::from_be_bytes)
}

#[derive(Debug, Clone, Default)]
struct Ear(Arc<Mutex<Vec<u8>>>);

/// TLS without a peer: the data that would be encrypted stays here.
#[derive(Debug)]
struct Bare;

impl TlsConnect<Ear> for Bare {
    type Stream = Ear;
    type Error = Infallible;
    type Future = Ready<Result<Ear, Infallible>>;

    fn connect(self, stream: Ear) -> Self::Future {
        ready(Ok(stream))
    }
}

impl TlsStream for Ear {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Ear {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // "Yes", to the question whether TLS is available.
        into.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Ear {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// A pooler between locktop and the server, and whether it is in transaction mode: there each statement may run in another
// session of the server, and the settings and prepared statements of a poll would stay in sessions that other applications
// use next. So this is tested before any setting, with statements that leave nothing behind, and each poll is then one
// transaction ([`crate::pg::poll::prepare`]). A pooler is recognized by the process that it announces at login, which is
// not that of the server.

const GOODBYE: Duration = Duration::from_millis(500);

/// Retries of a question that the server canceled.
const TRIES: usize = 10;

const REMEDY: &str = "connect directly to the host and port of the server, or to a pool in session mode";

/// Asks for the serving process. One message is one transaction, so the limit ends with it. It is needed because the
/// server looks the name up in a catalog, which may be locked. The name is qualified, so that no other function can run.
fn question(lock_timeout: Duration) -> String {
    format!("SET LOCAL lock_timeout = {}; SELECT pg_catalog.pg_backend_pid()", lock_timeout.as_millis())
}

pub(super) async fn is_between(client: &Client, lock_timeout: Duration) -> Result<bool, OpenError> {
    let question = question(lock_timeout);
    let mut answer = client.simple_query(&question).await;
    // Nothing may be set before, and the database may have a time limit too short for the first statement of a session.
    for _ in 0..TRIES {
        if !answer.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)) {
            break;
        }
        answer = client.simple_query(&question).await;
    }
    let answer = answer.map_err(|error| OpenError::Setup(message(&error)))?;
    let serves = value(&answer).and_then(|pid| pid.parse::<i32>().ok());
    Ok(serves != Some(announced(client).await))
}

/// The first value of an answer.
pub(super) fn value(answer: &[SimpleQueryMessage]) -> Option<&str> {
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    })
}

/// Checks, before anything is set in it, that a session belongs to this client.
///
/// # Errors
/// If a pooler uses another session for each transaction, if that cannot be determined, or if the server does not answer.
pub async fn is_own(client: &Client, info: &ConnInfo) -> Result<(), OpenError> {
    let PollLimits { lock_timeout, poll_timeout, .. } = PollLimits::default();
    let between = tokio::time::timeout(poll_timeout, is_between(client, lock_timeout)).await;
    if between.map_err(|_| OpenError::Silent)??
        && Box::pin(detect_pooling(client, info, poll_timeout)).await == Pooling::Transactions
    {
        return Err(no_session());
    }
    Ok(())
}

/// Whether the pooler in between keeps a session for its client. Opens another connection for a moment. If that fails or
/// shows nothing about the first one, transaction mode is assumed.
pub(super) async fn detect_pooling(client: &Client, info: &ConnInfo, timeout: Duration) -> Pooling {
    let asked = Box::pin(refuse_transaction_mode(client, info));
    match tokio::time::timeout(timeout, asked).await {
        Ok(Ok(())) => Pooling::Sessions,
        _ => Pooling::Transactions,
    }
}

/// For what needs more than a pooler in this mode provides.
pub(super) fn refused(mode: &str, why: &str) -> OpenError {
    OpenError::Pooler(format!(
        "a pooler in {mode} mode is between locktop and the server, and {why}: {REMEDY}"
    ))
}

/// For what needs its own session.
pub(super) fn no_session() -> OpenError {
    refused("transaction", "this needs a session of its own")
}

/// Resets a session before a pooler passes it to its next client. Most poolers do that themselves, but it can be disabled
/// (`server_reset_query` of pgbouncer).
pub(crate) async fn take_back(client: &Client) {
    let _ = tokio::time::timeout(GOODBYE, client.batch_execute("DISCARD ALL")).await;
}
