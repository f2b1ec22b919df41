//! The running poll: a snapshot every interval, a view for each, and a new connection when the old one is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::digest::Digest;
use super::learn::Learned;
use crate::clock;
use crate::model::lock_name::LockNames;
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::pg::conninfo::ConnInfo;
use crate::pg::poll::{Limits, OpenError, PollError, Session};

/// How to poll.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose views these are.
    pub target: TargetId,
    /// From the start of one poll to the start of the next.
    pub interval: Duration,
    /// How far a poll may go.
    pub limits: Limits,
    /// Limits of the findings.
    pub thresholds: Thresholds,
    /// Names of advisory keys.
    pub lock_names: LockNames,
    /// More of them, as they are learned.
    pub learned: Option<watch::Receiver<Learned>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: TargetId::default(),
            interval: Duration::from_secs(1),
            limits: Limits::default(),
            thresholds: Thresholds::default(),
            lock_names: LockNames::default(),
            learned: None,
        }
    }
}

/// What the screen may ask of the poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Poll this often from now on.
    Interval(Duration),
    /// Poll now.
    Refresh,
}

/// Delays between attempts to connect: 0.5 s, doubling up to 10 s.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// How long to wait before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let delay = Duration::from_millis(500) * 2u32.saturating_pow(self.attempts.min(5));
        self.attempts = self.attempts.saturating_add(1);
        delay.min(Duration::from_secs(10))
    }

    /// Attempts so far.
    #[must_use]
    pub fn attempts(self) -> u32 {
        self.attempts
    }
}

/// Why the rest between two polls is over.
enum Wake {
    /// The next poll is due, or wanted.
    Due,
    /// The connection is lost.
    Lost(PollError),
    /// Nobody listens any more.
    Alone,
}

/// A poll that is connected.
#[derive(Debug)]
pub struct Live {
    info: ConnInfo,
    settings: Settings,
    session: Session,
    digest: Digest,
}

impl Live {
    /// Connects. While the server has no connection free or is starting up (SQLSTATE 53300, 57P03) this goes on
    /// trying, and tells `waiting` why each time.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses for another reason.
    pub async fn connect(
        info: ConnInfo,
        settings: Settings,
        mut waiting: impl FnMut(&OpenError),
    ) -> Result<Self, OpenError> {
        let mut backoff = Backoff::default();
        loop {
            match Session::open(&info, settings.limits.clone()).await {
                Ok(session) => {
                    let digest = Digest::new(
                        settings.target,
                        settings.thresholds.clone(),
                        settings.lock_names.clone(),
                    );
                    return Ok(Self { info, settings, session, digest });
                }
                Err(error) if error.is_temporary() => {
                    waiting(&error);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The view to begin with, which has no snapshot yet.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.digest.view()
    }

    /// Polls until nobody listens any more.
    pub async fn run(mut self, mut commands: mpsc::Receiver<Command>, views: watch::Sender<Arc<View>>) {
        loop {
            let started = clock::monotonic();
            let wake = match self.session.poll(self.digest.snapshot()).await {
                Ok(snapshot) => {
                    self.take_names();
                    if views.send(self.digest.snapshot_taken(snapshot)).is_err() {
                        return;
                    }
                    self.rest(started, &mut commands, &views).await
                }
                Err(error) => Wake::Lost(error),
            };
            match wake {
                Wake::Due => {}
                Wake::Alone => return,
                Wake::Lost(error) => {
                    if !self.reconnect(&error.to_string(), &views).await {
                        return;
                    }
                }
            }
        }
    }

    /// Takes names in that were learned since the last poll.
    fn take_names(&mut self) {
        if let Some(learned) = &mut self.settings.learned
            && learned.has_changed().is_ok_and(|changed| changed)
        {
            self.digest.learned(learned.borrow_and_update().clone());
        }
    }

    /// Waits until the next poll is due, or wanted.
    async fn rest(
        &mut self,
        started: std::time::Instant,
        commands: &mut mpsc::Receiver<Command>,
        views: &watch::Sender<Arc<View>>,
    ) -> Wake {
        let mut listening = true;
        loop {
            let passed = clock::monotonic().duration_since(started);
            tokio::select! {
                () = views.closed() => return Wake::Alone,
                error = self.session.closed() => return Wake::Lost(error),
                command = commands.recv(), if listening => match command {
                    Some(Command::Refresh) => return Wake::Due,
                    Some(Command::Interval(interval)) => self.settings.interval = interval,
                    None => listening = false,
                },
                () = tokio::time::sleep(self.settings.interval.saturating_sub(passed)) => return Wake::Due,
            }
        }
    }

    /// Connects again, for as long as it takes; false when nobody listens any more.
    async fn reconnect(&mut self, reason: &str, views: &watch::Sender<Arc<View>>) -> bool {
        let mut backoff = Backoff::default();
        let mut reason = reason.to_owned();
        loop {
            if views.send(self.digest.link_lost(&reason, backoff.attempts())).is_err() {
                return false;
            }
            tokio::select! {
                () = views.closed() => return false,
                () = tokio::time::sleep(backoff.next_delay()) => {}
            }
            match Session::open(&self.info, self.settings.limits.clone()).await {
                Ok(session) => {
                    self.session = session;
                    return true;
                }
                Err(error) => reason = error.to_string(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_grows_to_ten_seconds() {
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..7).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(backoff.attempts(), 7);
    }
}
