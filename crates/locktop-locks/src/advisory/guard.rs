use tokio::sync::{mpsc, oneshot, watch};

use super::error::{AdvisoryError, Lost};
use super::session::Session;
use super::source::Conn;
use super::{Key, Mode, Wait};
use crate::held;

/// A lock of a session, or several, until it is released, dropped or lost.
///
/// Dropping it closes the connection: the server releases the locks, and no pool ever gets a connection that holds one.
#[derive(Debug)]
#[must_use = "dropping it closes the connection and releases the lock"]
pub struct Guard {
    pid: i32,
    /// In the order in which they were taken.
    held: Vec<(Key, Mode)>,
    calls: mpsc::Sender<Request>,
    lost: watch::Receiver<Option<Lost>>,
}

/// What a guard asks the task that has the connection for. A guard that is dropped asks for nothing any more.
#[derive(Debug)]
enum Request {
    Lock(Key, Mode, Wait, oneshot::Sender<Result<bool, AdvisoryError>>),
    Release(Vec<(Key, Mode)>, oneshot::Sender<Result<bool, AdvisoryError>>),
}

impl Guard {
    pub(super) fn new<C: Conn>(session: Session<C>, pid: i32, held: Vec<(Key, Mode)>) -> Self {
        let (calls, requests) = mpsc::channel(1);
        let (ended, lost) = watch::channel(None);
        tokio::spawn(keep(session, requests, ended));
        Self { pid, held, calls, lost }
    }

    /// The process id of the backend that has the lock.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The locks held, as often as they were taken, in the order in which they were taken.
    #[must_use]
    pub fn held(&self) -> &[(Key, Mode)] {
        &self.held
    }

    /// Whether the connection, and with it the lock, is there, as far as this process has noticed.
    ///
    /// # Errors
    /// If the lock is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.lost.borrow().clone().map_or(Ok(()), Err)
    }

    /// Completes when the lock is lost: work under it must stop then. It does not after a release.
    pub fn lost(&self) -> impl Future<Output = Lost> + Send + use<> {
        let mut lost = self.lost.clone();
        async move {
            let found = lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone());
            match found {
                Some(lost) => lost,
                None => std::future::pending().await,
            }
        }
    }

    /// Runs the work while the lock is held, and drops it midway when the lock is lost.
    ///
    /// # Errors
    /// If the lock was lost before the last step.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        held::run(work, || self.check(), self.lost()).await
    }

    /// Acquires another lock on the same connection, or the same one again: locks stack. Returns false if it is not granted
    /// in time; the locks held before are kept. If this is dropped while it waits, the connection is closed, and every lock
    /// is released.
    ///
    /// # Errors
    /// If the server refuses, and then the locks held before are kept; or if the connection ends, or does not answer in time.
    pub async fn also(&mut self, key: impl Into<Key>, mode: Mode, wait: Wait) -> Result<bool, AdvisoryError> {
        let key = key.into();
        let (reply, answer) = oneshot::channel();
        let granted = self.ask(Request::Lock(key.clone(), mode, wait, reply), answer).await?;
        if granted {
            self.held.push((key, mode));
        }
        Ok(granted)
    }

    /// Releases all locks and gives the connection back.
    ///
    /// # Errors
    /// If the connection ended before, or the server says that it had one of them no longer; they are released all the same.
    pub async fn release(mut self) -> Result<(), AdvisoryError> {
        let (reply, answer) = oneshot::channel();
        let held = std::mem::take(&mut self.held);
        let were_held = self.ask(Request::Release(held, reply), answer).await?;
        if were_held { Ok(()) } else { Err(Lost::Unlocked.into()) }
    }

    async fn ask(
        &self,
        request: Request,
        answer: oneshot::Receiver<Result<bool, AdvisoryError>>,
    ) -> Result<bool, AdvisoryError> {
        let lost = || self.check().err().unwrap_or(Lost::GivenUp);
        self.calls.send(request).await.map_err(|_| lost())?;
        answer.await.unwrap_or_else(|_| Err(lost().into()))
    }
}

/// Has the connection for as long as the guard exists, and notices its end.
async fn keep<C: Conn>(
    mut session: Session<C>,
    mut requests: mpsc::Receiver<Request>,
    lost: watch::Sender<Option<Lost>>,
) {
    let why = loop {
        let request = tokio::select! {
            biased;
            reason = session.ended() => break Lost::Ended(reason),
            request = requests.recv() => request,
        };
        match request {
            None => return,
            Some(Request::Release(held, reply)) => {
                let answer = session.unlock(&held, &held).await;
                if answer.is_ok() {
                    session.give_back();
                }
                let _ = reply.send(answer);
                return;
            }
            Some(Request::Lock(key, mode, wait, mut reply)) => {
                let locks = [(key, mode)];
                let answer = tokio::select! {
                    answer = session.lock(&locks, wait) => answer,
                    // It may be granted later: so this session holds nothing from now on.
                    () = reply.closed() => break Lost::GivenUp,
                };
                let ended = match &answer {
                    Err(AdvisoryError::Lost { reason, .. }) => Some(Lost::Ended(reason.clone())),
                    Err(AdvisoryError::Silent { .. }) => Some(Lost::GivenUp),
                    _ => None,
                };
                let _ = reply.send(answer.map(|pid| pid.is_some()));
                if let Some(ended) = ended {
                    break ended;
                }
            }
        }
    };
    drop(session);
    let _ = lost.send(Some(why));
}
