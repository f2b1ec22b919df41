//! The running poll: a snapshot per interval, a view for each, and a new connection when the old one is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::acting::OpenConnection;
use super::history::HistorySender;
use super::journal::Journal;
use super::learn::Learned;
use super::record::redact::{RedactedTexts, Redaction};
use super::throttle::Throttle;
use super::view_builder::ViewBuilder;
use super::{EventReceiver, EventSender};
use crate::clock;
use crate::model::adapter::Parts;
use crate::model::lock_name::LockNames;
use crate::model::past::CarriedState;
use crate::model::snapshot::{Pooling, Snapshot};
use crate::model::thresholds::{ExpectedBlocker, Thresholds};
use crate::model::view::{TargetId, View};
use crate::pg::poll::{OpenError, PollConnection, PollError, PollLimits};
use crate::redis::RedisState;
use pg_connect::Backoff;
use pg_connect::conninfo::ConnInfo;

#[derive(Debug, Clone, Default)]
pub struct FeedSettings {
    pub target: TargetId,
    pub limits: PollLimits,
    pub thresholds: Thresholds,
    pub lock_names: LockNames,
    pub learned: Option<watch::Receiver<Learned>>,
    /// Redaction of statements, applied before a snapshot is used. `None` if nothing is recorded.
    pub redaction: Option<Redaction>,
    pub redis: Option<watch::Receiver<RedisState>>,
    /// The share of one core of the server that reading `pg_locks` may take. `None` always uses the requested interval.
    pub server_load: Option<f64>,
}

/// Requests of the screens to the poll. The newest value applies, and none is lost while the server does not answer.
#[derive(Debug, Clone)]
pub struct PollControl {
    pub interval: watch::Receiver<Duration>,
    /// The parts of other job systems that are shown.
    pub shown: watch::Receiver<Parts>,
    /// The expected blockers. `None` keeps those of the settings.
    pub expected: Option<watch::Receiver<Arc<[ExpectedBlocker]>>>,
    pub refresh: Arc<Notify>,
}

impl PollControl {
    /// A control with this interval, and the sender to change it. The interval stays if the sender is dropped.
    pub fn every(interval: Duration) -> (watch::Sender<Duration>, Self) {
        let (sender, interval) = watch::channel(interval);
        let (_, shown) = watch::channel(Parts::ALL);
        (sender, Self { interval, shown, expected: None, refresh: Arc::default() })
    }

    /// Returns the sender for expected blockers, with this initial value.
    pub fn expecting(&mut self, expected: Arc<[ExpectedBlocker]>) -> watch::Sender<Arc<[ExpectedBlocker]>> {
        let (sender, expected) = watch::channel(expected);
        self.expected = Some(expected);
        sender
    }

    /// Returns the sender for the shown parts, initially none. Without it all parts are read.
    pub fn showing(&mut self) -> watch::Sender<Parts> {
        let (sender, shown) = watch::channel(Parts::NONE);
        self.shown = shown;
        sender
    }
}

enum Wake {
    Due,
    Lost(PollError),
    Alone,
}

#[derive(Debug)]
pub struct Live {
    info: ConnInfo,
    settings: FeedSettings,
    session: PollConnection,
    /// The pooler, if a poll has detected one.
    pooling: Option<Pooling>,
    view_builder: ViewBuilder,
    /// Events from outside the poll: the sender, and its receiver.
    event_sender: EventSender,
    event_receiver: EventReceiver,
    known: RedactedTexts,
    history_sender: Option<HistorySender>,
    /// The state before the next snapshot.
    past: Arc<CarriedState>,
    /// The poll's connection, for users without another one. `None` while it is lost.
    open_connection: watch::Sender<Option<OpenConnection>>,
    backoff: Backoff,
    throttle: Option<Throttle>,
    journal: Journal,
}

impl Live {
    /// Connects. Retries while the server has no free connection or is starting up (SQLSTATE 53300, 57P03), and passes each
    /// error to `waiting`.
    pub async fn connect(
        info: ConnInfo,
        settings: FeedSettings,
        mut waiting: impl FnMut(&OpenError),
    ) -> Result<Self, OpenError> {
        let mut backoff = Backoff::default();
        loop {
            let started = clock::monotonic();
            match PollConnection::open(&info, settings.limits.clone()).await {
                Ok(session) => {
                    let mut journal = Journal::default();
                    journal.connected(&info.target(), started.elapsed());
                    let view_builder = ViewBuilder::new(
                        settings.target,
                        settings.thresholds.clone(),
                        settings.lock_names.clone(),
                    );
                    let (backoff, (event_sender, event_receiver)) = (Backoff::default(), EventSender::new());
                    let open_connection = watch::Sender::new(OpenConnection::of(&session));
                    let (history_sender, past) = (None, view_builder.past());
                    let throttle = settings.server_load.map(Throttle::new);
                    return Ok(Self {
                        info,
                        settings,
                        session,
                        pooling: None,
                        view_builder,
                        event_sender,
                        event_receiver,
                        known: RedactedTexts::default(),
                        history_sender,
                        past,
                        open_connection,
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

    pub fn event_sender(&self) -> EventSender {
        self.event_sender.clone()
    }

    pub fn send_history_to(&mut self, history_sender: HistorySender) {
        self.history_sender = Some(history_sender);
    }

    pub fn open_connection(&self) -> watch::Receiver<Option<OpenConnection>> {
        self.open_connection.subscribe()
    }

    pub fn view(&self) -> Arc<View> {
        self.view_builder.view()
    }

    /// Polls until the receiver of views is dropped.
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
                    self.view_builder.rights_read(rights);
                    self.take_cost(*control.interval.borrow());
                    if let Some(expected) = &control.expected {
                        self.view_builder.expect(Arc::clone(&expected.borrow()));
                    }
                    if views.send(self.view_builder.snapshot_taken(snapshot)).is_err() {
                        return;
                    }
                    self.send_to_history();
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
                    if matches!(error, PollError::Pooled) {
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
        let Self { session, view_builder, event_receiver, .. } = self;
        let before = view_builder.view();
        let poll = Box::pin(session.poll(before.snapshot.as_deref()));
        while_reporting(view_builder, event_receiver, views, poll).await
    }

    fn send_to_history(&mut self) {
        if let Some(history_sender) = &self.history_sender {
            let past = std::mem::replace(&mut self.past, self.view_builder.past());
            history_sender.keep(self.view_builder.observation(past));
        }
    }

    fn hides_names(&self) -> bool {
        self.settings.redaction.is_some_and(Redaction::hides_names)
    }

    fn take_names(&mut self) {
        if let Some(learned) = &mut self.settings.learned
            && learned.has_changed().is_ok_and(|changed| changed)
        {
            self.view_builder.learned(learned.borrow_and_update().clone());
        }
    }

    fn take_cost(&mut self, asked: Duration) {
        let Self { throttle, session, view_builder, journal, .. } = self;
        let slowed = throttle.as_mut().and_then(|throttle| {
            throttle.polled(session.locks_cost());
            throttle.slowed(asked)
        });
        journal.slowed(slowed);
        view_builder.slowed(slowed);
        view_builder.refresh(slowed.map_or(asked, |slowed| Duration::from_secs_f64(slowed.interval)));
    }

    fn take_redis(&mut self) {
        if let Some(redis) = &mut self.settings.redis {
            self.view_builder.redis_read(redis.borrow_and_update().clone());
        }
    }

    async fn rest(
        &mut self,
        started: std::time::Instant,
        control: &mut PollControl,
        views: &watch::Sender<Arc<View>>,
    ) -> Wake {
        let Self { session, view_builder, event_receiver, throttle, .. } = self;
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
        while_reporting(view_builder, event_receiver, views, std::pin::pin!(rest)).await
    }

    /// Reconnects, for as long as necessary. Returns false if the receiver of views is dropped. The delay grows until a poll is
    /// answered, even if every connection succeeds.
    async fn reconnect(
        &mut self,
        reason: &str,
        control: &PollControl,
        views: &watch::Sender<Arc<View>>,
    ) -> bool {
        self.session.close();
        self.open_connection.send_replace(None);
        let (mut reason, mut silent) = (reason.to_owned(), false);
        loop {
            if self.hides_names() {
                // The reason may contain a host or a role.
                "the connection is lost".clone_into(&mut reason);
            }
            let delay = self.backoff.failed(silent);
            Journal::not_connected(&reason, delay);
            if views.send(self.view_builder.link_lost(&reason, self.backoff.attempts(), delay)).is_err() {
                return false;
            }
            self.past = self.view_builder.past();
            if let Some(history_sender) = &self.history_sender {
                history_sender.lost(&reason);
            }
            let Self { info, settings, pooling, view_builder, event_receiver, .. } = self;
            let open = Box::pin(async {
                tokio::select! {
                    () = views.closed() => return None,
                    () = control.refresh.notified() => {}
                    () = tokio::time::sleep(delay) => {}
                }
                let started = clock::monotonic();
                Some((
                    PollConnection::open_behind(info, settings.limits.clone(), *pooling).await,
                    started.elapsed(),
                ))
            });
            let Some((opened, took)) = while_reporting(view_builder, event_receiver, views, open).await
            else {
                return false;
            };
            match opened {
                Ok(session) => {
                    self.journal.connected(&self.info.target(), took);
                    self.open_connection.send_replace(OpenConnection::of(&session));
                    self.session = session;
                    return true;
                }
                Err(error) => {
                    if matches!(error, OpenError::Pooled) {
                        self.pooling = Some(Pooling::Transactions);
                    }
                    (reason, silent) = (error.to_string(), error.is_silence());
                }
            }
        }
    }
}

/// Awaits a future, and publishes events that arrive meanwhile.
async fn while_reporting<T>(
    view_builder: &mut ViewBuilder,
    event_receiver: &mut EventReceiver,
    views: &watch::Sender<Arc<View>>,
    mut future: impl Future<Output = T> + Unpin,
) -> T {
    loop {
        tokio::select! {
            done = &mut future => return done,
            first = event_receiver.next() => {
                let entries = std::iter::once(first).chain(event_receiver.rest());
                // A dropped receiver is detected elsewhere.
                let _ = views.send(view_builder.events_received(entries));
            }
        }
    }
}
