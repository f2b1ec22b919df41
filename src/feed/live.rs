//! The running poll: a snapshot every interval, a view for each, and a new connection when the old one is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::digest::Digest;
use super::event_sender::{EventSender, Reader};
use super::history::LookSender;
use super::journal::Journal;
use super::learn::Learned;
use super::lines::Line;
use super::record::redact::{Known, Redaction};
use super::throttle::Throttle;
use crate::clock;
use crate::model::adapter::Parts;
use crate::model::expected::ExpectedBlocker;
use crate::model::lock_name::LockNames;
use crate::model::past::Past;
use crate::model::snapshot::{Pooling, Snapshot};
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::pg::poll::{Limits, OpenError, PollError, Session};
use crate::redis::RedisState;
use pg_connect::Backoff;
use pg_connect::conninfo::ConnInfo;

/// What is polled, how far, and what is made of it.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The server that the views are of.
    pub target: TargetId,
    /// How far a poll may go.
    pub limits: Limits,
    /// From which values on the findings speak.
    pub thresholds: Thresholds,
    /// Names of advisory keys, from the config.
    pub lock_names: LockNames,
    /// More of them, as they are learned.
    pub learned: Option<watch::Receiver<Learned>>,
    /// What is left out of statements, before anything is made of them; none where nothing is recorded.
    pub redaction: Option<Redaction>,
    /// The Redis servers, as they are read beside the poll.
    pub redis: Option<watch::Receiver<RedisState>>,
    /// The share of one core of the server that reading `pg_locks` may take; none where the interval is always as asked.
    pub server_load: Option<f64>,
}

/// What the screen asks of the poll. The newest word holds, and none is lost while the server does not answer.
#[derive(Debug, Clone)]
pub struct PollControl {
    /// The pause from one poll to the next.
    pub interval: watch::Receiver<Duration>,
    /// What somebody looks at of the job systems of others.
    pub shown: watch::Receiver<Parts>,
    /// Which blockers are expected; none where that stays as the settings say.
    pub expected: Option<watch::Receiver<Arc<[ExpectedBlocker]>>>,
    /// Has the next poll made at once.
    pub refresh: Arc<Notify>,
}

impl PollControl {
    /// The wish for a poll this often, and where to change it. It stays when the sender goes.
    pub fn every(interval: Duration) -> (watch::Sender<Duration>, Self) {
        let (sender, interval) = watch::channel(interval);
        let (_, shown) = watch::channel(Parts::ALL);
        (sender, Self { interval, shown, expected: None, refresh: Arc::default() })
    }

    /// Where to say which blockers are expected from now on; at first these.
    pub fn expecting(&mut self, expected: Arc<[ExpectedBlocker]>) -> watch::Sender<Arc<[ExpectedBlocker]>> {
        let (sender, expected) = watch::channel(expected);
        self.expected = Some(expected);
        sender
    }

    /// Where to say what somebody looks at; at first nothing of those. Without this it is everything.
    pub fn showing(&mut self) -> watch::Sender<Parts> {
        let (sender, shown) = watch::channel(Parts::NONE);
        self.shown = shown;
        sender
    }
}

/// Why the rest between two polls is over.
enum Wake {
    /// The next poll is due, or wanted.
    Due,
    /// The connection is lost, for this reason.
    Lost(PollError),
    /// Nobody reads the views any more.
    Alone,
}

/// A connected server that is polled, with the views that are made of it.
#[derive(Debug)]
pub struct Live {
    info: ConnInfo,
    settings: Settings,
    session: Session,
    /// The pooler in between, where a poll has found it out.
    pooling: Option<Pooling>,
    digest: Digest,
    /// What others tell, and where it is read.
    event_sender: EventSender,
    told: Reader,
    /// What was left of the statements of the last snapshot, for a recorder.
    known: Known,
    /// Who keeps the looks; none where nobody does.
    look_sender: Option<LookSender>,
    /// What was remembered before the next snapshot.
    past: Arc<Past>,
    /// The connection of the poll, for whoever has no other; none while it is lost.
    line: watch::Sender<Option<Line>>,
    /// Since the last poll that was answered.
    backoff: Backoff,
    throttle: Option<Throttle>,
    journal: Journal,
}

impl Live {
    /// Connects. While the server has no connection free or is starting up (SQLSTATE 53300, 57P03) this goes on
    /// trying, and tells `waiting` why each time.
    pub async fn connect(
        info: ConnInfo,
        settings: Settings,
        mut waiting: impl FnMut(&OpenError),
    ) -> Result<Self, OpenError> {
        let mut backoff = Backoff::default();
        loop {
            let started = clock::monotonic();
            match Session::open(&info, settings.limits.clone()).await {
                Ok(session) => {
                    let mut journal = Journal::default();
                    journal.connected(&info.target(), started.elapsed());
                    let digest = Digest::new(
                        settings.target,
                        settings.thresholds.clone(),
                        settings.lock_names.clone(),
                    );
                    let (backoff, (event_sender, told)) = (Backoff::default(), EventSender::new());
                    let line = watch::Sender::new(Line::of(&session));
                    let (look_sender, past) = (None, digest.past());
                    let throttle = settings.server_load.map(Throttle::new);
                    return Ok(Self {
                        info,
                        settings,
                        session,
                        pooling: None,
                        digest,
                        event_sender,
                        told,
                        known: Known::default(),
                        look_sender,
                        past,
                        line,
                        backoff,
                        throttle,
                        journal,
                    });
                }
                Err(error) if error.is_temporary() => {
                    waiting(&error);
                    let delay = backoff.failed(error.is_silence());
                    Journal::not_connected(&error.to_string(), delay);
                    tokio::time::sleep(delay).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Where others tell of events, which are then in the next view.
    pub fn event_sender(&self) -> EventSender {
        self.event_sender.clone()
    }

    /// From now on every look is handed over, after its picture.
    pub fn keep_looks(&mut self, look_sender: LookSender) {
        self.look_sender = Some(look_sender);
    }

    /// The connection of the poll, which serves where there is no other.
    pub fn line(&self) -> watch::Receiver<Option<Line>> {
        self.line.subscribe()
    }

    /// The view to begin with, which has no snapshot yet.
    pub fn view(&self) -> Arc<View> {
        self.digest.view()
    }

    /// Polls until nobody listens any more.
    pub async fn run(mut self, mut control: PollControl, views: watch::Sender<Arc<View>>) {
        loop {
            let started = clock::monotonic();
            self.session.watch(*control.shown.borrow());
            let wake = match self.poll(&views).await {
                Ok(mut snapshot) => {
                    self.journal.polled(&snapshot, started.elapsed(), *control.interval.borrow());
                    if let Some(redaction) = self.settings.redaction {
                        redaction.apply_live(&mut snapshot, &mut self.known);
                    }
                    self.backoff = Backoff::default();
                    self.take_names();
                    self.take_redis();
                    let rights = self.session.rights().filter(|_| !self.hides_names());
                    self.digest.rights_told(rights);
                    self.take_cost(*control.interval.borrow());
                    if let Some(expected) = &control.expected {
                        self.digest.expect(Arc::clone(&expected.borrow()));
                    }
                    if views.send(self.digest.snapshot_taken(snapshot)).is_err() {
                        return;
                    }
                    self.keep_look();
                    self.rest(started, &mut control, &views).await
                }
                Err(error) => {
                    Journal::failed(&error.to_string(), started.elapsed());
                    Wake::Lost(error)
                }
            };
            match wake {
                Wake::Due => {}
                Wake::Alone => return,
                Wake::Lost(error) => {
                    if matches!(error, PollError::Lent) {
                        self.pooling = Some(Pooling::Transactions);
                    }
                    if !self.reconnect(&error.to_string(), &control, &views).await {
                        return;
                    }
                }
            }
        }
    }

    async fn poll(&mut self, views: &watch::Sender<Arc<View>>) -> Result<Snapshot, PollError> {
        let Self { session, digest, told, .. } = self;
        let before = digest.view();
        let poll = Box::pin(session.poll(before.snapshot.as_deref()));
        telling(digest, told, views, poll).await
    }

    /// Hands the last look over to the history or the recorder.
    fn keep_look(&mut self) {
        if let Some(look_sender) = &self.look_sender {
            let past = std::mem::replace(&mut self.past, self.digest.past());
            look_sender.keep(self.digest.look(past));
        }
    }

    fn hides_names(&self) -> bool {
        self.settings.redaction.is_some_and(Redaction::hides_names)
    }

    /// Takes names in that were learned since the last poll.
    fn take_names(&mut self) {
        if let Some(learned) = &mut self.settings.learned
            && learned.has_changed().is_ok_and(|changed| changed)
        {
            self.digest.learned(learned.borrow_and_update().clone());
        }
    }

    /// Polls as often as asked, or less often where that would cost the server too much.
    fn take_cost(&mut self, asked: Duration) {
        let Self { throttle, session, digest, journal, .. } = self;
        let slowed = throttle.as_mut().and_then(|throttle| {
            throttle.looked(session.locks_cost());
            throttle.slowed(asked)
        });
        journal.slowed(slowed);
        digest.slowed(slowed);
        digest.refresh(slowed.map_or(asked, |slowed| Duration::from_secs_f64(slowed.interval)));
    }

    /// Takes the newest state of the Redis servers in; it may be the same as before, and older.
    fn take_redis(&mut self) {
        if let Some(redis) = &mut self.settings.redis {
            self.digest.redis_read(redis.borrow_and_update().clone());
        }
    }

    /// Waits until the next poll is due, or wanted.
    async fn rest(
        &mut self,
        started: std::time::Instant,
        control: &mut PollControl,
        views: &watch::Sender<Arc<View>>,
    ) -> Wake {
        let Self { session, digest, told, throttle, .. } = self;
        let mut listening = true;
        let rest = async {
            let mut silence = std::pin::pin!(session.silence());
            loop {
                let asked = *control.interval.borrow_and_update();
                let slowed = throttle.as_ref().and_then(|throttle| throttle.slowed(asked));
                let interval = slowed.map_or(asked, |slowed| Duration::from_secs_f64(slowed.interval));
                let passed = clock::monotonic().duration_since(started);
                tokio::select! {
                    () = views.closed() => return Wake::Alone,
                    error = session.closed() => return Wake::Lost(error),
                    error = &mut silence => return Wake::Lost(error),
                    () = control.refresh.notified() => return Wake::Due,
                    changed = control.interval.changed(), if listening => listening = changed.is_ok(),
                    () = tokio::time::sleep(interval.saturating_sub(passed)) => return Wake::Due,
                }
            }
        };
        telling(digest, told, views, std::pin::pin!(rest)).await
    }

    /// Connects again, for as long as it takes; false when nobody listens any more. Until a poll is answered each
    /// attempt comes later than the one before, also where the server lets us in every time.
    async fn reconnect(
        &mut self,
        reason: &str,
        control: &PollControl,
        views: &watch::Sender<Arc<View>>,
    ) -> bool {
        self.session.close();
        self.line.send_replace(None);
        let (mut reason, mut silent) = (reason.to_owned(), false);
        loop {
            if self.hides_names() {
                // It may say which host, and which role.
                "the connection is lost".clone_into(&mut reason);
            }
            let delay = self.backoff.failed(silent);
            Journal::not_connected(&reason, delay);
            if views.send(self.digest.link_lost(&reason, self.backoff.attempts(), delay)).is_err() {
                return false;
            }
            self.past = self.digest.past();
            if let Some(look_sender) = &self.look_sender {
                look_sender.lost(&reason);
            }
            let Self { info, settings, pooling, digest, told, .. } = self;
            let open = Box::pin(async {
                tokio::select! {
                    () = views.closed() => return None,
                    () = control.refresh.notified() => {}
                    () = tokio::time::sleep(delay) => {}
                }
                let started = clock::monotonic();
                Some((Session::open_behind(info, settings.limits.clone(), *pooling).await, started.elapsed()))
            });
            let Some((opened, took)) = telling(digest, told, views, open).await else { return false };
            match opened {
                Ok(session) => {
                    self.journal.connected(&self.info.target(), took);
                    self.line.send_replace(Line::of(&session));
                    self.session = session;
                    return true;
                }
                Err(error) => {
                    if matches!(error, OpenError::Lent) {
                        self.pooling = Some(Pooling::Transactions);
                    }
                    (reason, silent) = (error.to_string(), error.is_silence());
                }
            }
        }
    }
}

/// Waits for something, and publishes at once what is told meanwhile.
async fn telling<T>(
    digest: &mut Digest,
    told: &mut Reader,
    views: &watch::Sender<Arc<View>>,
    mut future: impl Future<Output = T> + Unpin,
) -> T {
    loop {
        tokio::select! {
            done = &mut future => return done,
            first = told.next() => {
                let entries = std::iter::once(first).chain(told.rest());
                // That nobody listens any more is noticed elsewhere.
                let _ = views.send(digest.told(entries));
            }
        }
    }
}
