use tokio::sync::{mpsc, oneshot, watch};

use super::session::Session;
use super::source::Conn;
use super::{Key, Mode, Wait};
use crate::{Error, Held, Lost};

/// A lock of a session, or several, until it is released, dropped or lost.
///
/// Dropping it closes the connection: the server releases the locks, and no pool ever gets a connection that holds one.
#[derive(Debug)]
#[must_use = "dropping it closes the connection and releases the lock"]
pub struct Guard {
    pid: i32,
    held: watch::Receiver<Vec<(Key, Mode)>>,
    calls: mpsc::Sender<GuardRequest>,
    lost: watch::Receiver<Option<Lost>>,
}

/// A request of the guard to the task that owns the connection. Dropping the guard closes the channel.
#[derive(Debug)]
enum GuardRequest {
    Lock(Key, Mode, Wait, oneshot::Sender<Result<bool, Error>>),
    Release(oneshot::Sender<Result<bool, Error>>),
}

impl Guard {
    pub(super) fn new<C: Conn>(session: Session<C>, pid: i32, held: Vec<(Key, Mode)>) -> Self {
        let (calls, requests) = mpsc::channel(1);
        let (report, lost) = watch::channel(None);
        let (taken, held) = watch::channel(held);
        let stopped = Some(Lost::Ended("its task was stopped".to_owned()));
        tokio::spawn(keep(session, requests, taken, Report { to: report, loss: stopped }));
        Self { pid, held, calls, lost }
    }

    /// The process id of the backend that has the lock.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The locks held, as often as they were taken, in the order in which they were taken.
    #[must_use]
    pub fn held(&self) -> Vec<(Key, Mode)> {
        self.held.borrow().clone()
    }

    /// Acquires another lock on the same connection, or the same one again: locks stack. Returns false if it is not granted
    /// in time; the locks held before are kept. If this is dropped while it waits, the connection is closed, and every lock
    /// is released.
    ///
    /// # Errors
    /// If the server refuses, and then the locks held before are kept; or if the connection ends, or does not answer in time.
    pub async fn also(&mut self, key: impl Into<Key>, mode: Mode, wait: Wait) -> Result<bool, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask(GuardRequest::Lock(key.into(), mode, wait, reply), answer).await
    }

    /// Releases all locks and gives the connection back.
    ///
    /// # Errors
    /// If the connection ended before, or the server says that it had one of them no longer; they are released all the same.
    pub async fn release(self) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        let were_held = self.ask(GuardRequest::Release(reply), answer).await?;
        if were_held { Ok(()) } else { Err(Lost::Unlocked.into()) }
    }

    async fn ask(
        &self,
        request: GuardRequest,
        answer: oneshot::Receiver<Result<bool, Error>>,
    ) -> Result<bool, Error> {
        let lost = || self.check().err().unwrap_or(Lost::GivenUp);
        self.calls.send(request).await.map_err(|_| lost())?;
        answer.await.unwrap_or_else(|_| Err(lost().into()))
    }
}

impl Held for Guard {
    fn check(&self) -> Result<(), Lost> {
        self.lost.borrow().clone().map_or(Ok(()), Err)
    }

    fn lost(&self) -> impl Future<Output = Lost> + Send + 'static {
        let mut lost = self.lost.clone();
        async move {
            let found = lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone());
            match found {
                Some(lost) => lost,
                None => std::future::pending().await,
            }
        }
    }
}

/// Reports the loss of the lock when it is dropped, even if the task is stopped.
struct Report {
    to: watch::Sender<Option<Lost>>,
    /// `None` if the lock was released, or its guard dropped.
    loss: Option<Lost>,
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.loss.is_some() {
            self.to.send_replace(self.loss.take());
        }
    }
}

/// Owns the connection while the guard exists, and detects its loss.
async fn keep<C: Conn>(
    mut session: Session<C>,
    mut requests: mpsc::Receiver<GuardRequest>,
    held: watch::Sender<Vec<(Key, Mode)>>,
    mut report: Report,
) {
    let why = loop {
        let request = tokio::select! {
            biased;
            reason = session.ended() => break Lost::Ended(reason),
            request = requests.recv() => request,
        };
        match request {
            None => {
                report.loss = None;
                return;
            }
            Some(GuardRequest::Release(reply)) => {
                let list = held.borrow().clone();
                let answer = session.release(&list).await;
                if answer.is_ok() {
                    session.give_back();
                }
                report.loss = None;
                drop(report);
                let _ = reply.send(answer);
                return;
            }
            Some(GuardRequest::Lock(key, mode, wait, mut reply)) => {
                let lock = (key, mode);
                let answer = tokio::select! {
                    answer = another(&mut session, &lock, wait, &held) => answer,
                    // The lock may be granted later, so the session is closed.
                    () = reply.closed() => break Lost::GivenUp,
                };
                let ended = match &answer {
                    Err(Error::Disconnected { reason, .. }) => Some(Lost::Ended(reason.clone())),
                    Err(Error::Silent { .. }) => Some(Lost::GivenUp),
                    _ => None,
                };
                let is_received = reply.send(answer).is_ok();
                if let Some(ended) = ended.or((!is_received).then_some(Lost::GivenUp)) {
                    break ended;
                }
            }
        }
    };
    drop(session);
    report.loss = Some(why);
}

/// Takes one more lock. If a wait times out or is cancelled just as the lock is granted, the server reports an error but keeps
/// the lock (`LockErrorCleanup` in `proc.c`).
async fn another<C: Conn>(
    session: &mut Session<C>,
    lock: &(Key, Mode),
    wait: Wait,
    held: &watch::Sender<Vec<(Key, Mode)>>,
) -> Result<bool, Error> {
    let answer = session.lock(std::slice::from_ref(lock), wait).await;
    if matches!(answer, Ok(None) | Err(Error::Server { .. })) && !held.borrow().contains(lock) {
        session.unlock_if_held(lock).await?;
    }
    let is_granted = answer?.is_some();
    if is_granted {
        held.send_modify(|held| held.push(lock.clone()));
    }
    Ok(is_granted)
}
