use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::SubsecRound;

use super::ReceivedEvent;
use super::diff::{Diff, SnapshotChange};
use super::learn::Learned;
use crate::clock;
use crate::model::blame::{Blame, Counter};
use crate::model::event::{EventBody, EventKind, Events, ExternalEvent};
use crate::model::finding::{self, CheckInput, Deadlocks, Severity, Subject, server};
use crate::model::lock_name::LockNames;
use crate::model::normal_wait::NormalWaits;
use crate::model::past::{CarriedState, GraphFrom, KeptObservation, Observation};
use crate::model::plan::Rights;
use crate::model::redis_lease::RedisLeases;
use crate::model::refusals::{Refusals, WINDOW};
use crate::model::section::Observed;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::source_tables::SourceTables;
use crate::model::thresholds::{ExpectedBlocker, Thresholds};
use crate::model::view::{ConnectionState, Sample, Series, Slowed, TargetId, View};
use crate::model::wait_graph::{Input, WaitGraph};
use crate::model::{Text, Timestamp, adapter, held, lease, work_queue};
use crate::redis::RedisState;

const SERIES_MINUTES: u32 = 15;

#[derive(Debug)]
pub struct ViewBuilder {
    thresholds: Thresholds,
    /// Why lock names could not be read, one line each.
    notes: Arc<[Text]>,
    past: CarriedState,
    /// `None` for a stored snapshot, whose events are stored too.
    diff: Option<Diff>,
    /// Counts which sessions block others. `None` for a stored snapshot.
    counter: Option<Counter>,
    redis: Option<RedisState>,
    /// The server time of the last snapshot, and the local time at which it arrived.
    clocks: Option<(Timestamp, Instant)>,
    view: Arc<View>,
}

impl ViewBuilder {
    pub fn new(target: TargetId, thresholds: Thresholds, lock_names: LockNames) -> Self {
        let view = View {
            target,
            lock_names: Arc::new(lock_names),
            expected: thresholds.expected.as_slice().into(),
            ..View::default()
        };
        Self {
            thresholds,
            notes: Arc::default(),
            past: CarriedState::default(),
            diff: Some(Diff::default()),
            counter: Some(Counter::default()),
            redis: None,
            clocks: None,
            view: Arc::new(view),
        }
    }

    /// The view of a stored snapshot, as it was when live.
    pub fn view_of(kept: KeptObservation, target: TargetId, thresholds: &Thresholds) -> Arc<View> {
        let KeptObservation { id, snapshot, past, rights, lock_names, notes, events, blame, expected } = kept;
        let graph = past.graph_from.as_ref().map(|GraphFrom { backends, answers }| {
            Arc::new(WaitGraph::build(Input { backends, answers, ..input(&snapshot) }))
        });
        let mut view_builder = Self {
            notes,
            diff: None,
            counter: None,
            ..Self::new(target, thresholds.clone(), LockNames::default())
        };
        let before = View {
            id: id.saturating_sub(1),
            graph: graph.unwrap_or_default(),
            series: Arc::clone(&past.series),
            events,
            rights,
            lock_names,
            blame: blame.unwrap_or_default(),
            expected: expected.unwrap_or_else(|| Arc::clone(&view_builder.view.expected)),
            ..View::clone(&view_builder.view)
        };
        (view_builder.past, view_builder.view) = (past, Arc::new(before));
        view_builder.snapshot_taken(snapshot)
    }

    pub fn past(&self) -> Arc<CarriedState> {
        Arc::new(self.past.clone())
    }

    /// The last view in the form that is stored; `past` is the state before its snapshot.
    pub fn observation(&self, past: Arc<CarriedState>) -> Observation {
        Observation { view: self.view(), past, notes: Arc::clone(&self.notes) }
    }

    pub fn learned(&mut self, learned: Learned) {
        self.notes = learned.notes;
        self.view = Arc::new(View { lock_names: learned.names, ..View::clone(&self.view) });
    }

    pub fn expect(&mut self, expected: Arc<[ExpectedBlocker]>) {
        if expected != self.view.expected {
            self.view = Arc::new(View { expected, ..View::clone(&self.view) });
        }
    }

    pub fn rights_read(&mut self, rights: Option<Arc<Rights>>) {
        if rights != self.view.rights {
            self.view = Arc::new(View { rights, ..View::clone(&self.view) });
        }
    }

    pub fn redis_read(&mut self, state: RedisState) {
        self.redis = Some(state);
    }

    /// Sets for later snapshots whether polls are less frequent than requested.
    pub fn slowed(&mut self, slowed: Option<Slowed>) {
        if slowed != self.view.slowed {
            self.view = Arc::new(View { slowed, ..View::clone(&self.view) });
        }
    }

    pub fn refresh(&mut self, interval: Duration) {
        if let Some(counter) = &mut self.counter {
            counter.refresh(interval.as_secs_f64());
        }
    }

    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.view.snapshot.as_deref()
    }

    /// Makes the view of a snapshot. If its locks could not be read, the results of the last ones stay and are not computed
    /// again, so that ages do not grow without an observation.
    pub fn snapshot_taken(&mut self, mut snapshot: Snapshot) -> Arc<View> {
        if let Some(state) = &self.redis {
            join(&mut snapshot, state);
        }
        self.clocks = Some((snapshot.taken_at, clock::monotonic()));
        let adapters = self.past.adapters.evaluate(&snapshot, &self.thresholds);
        self.name_jobs(&adapters, &snapshot);
        let before = &self.view;
        let (mut graph, mut series) = if snapshot.locks.is_known() {
            let graph = WaitGraph::build(input(&snapshot));
            let series = extended(&before.series, snapshot.taken_at, &graph, SERIES_MINUTES);
            self.past.graph_from = Some(GraphFrom {
                backends: Arc::clone(snapshot.backends.last_rows()),
                answers: snapshot.answers.clone(),
            });
            (Arc::new(graph), Arc::new(series))
        } else {
            (Arc::clone(&before.graph), Arc::clone(&before.series))
        };
        if !(snapshot.sources.refusals.is_empty() && series.refusals.is_empty()) {
            refused(Arc::make_mut(&mut series), snapshot.taken_at, &snapshot.sources);
        }
        let index = Arc::new(SnapshotIndex::of(&snapshot, &graph));
        let leases = lease::LeaseBoard::of(&snapshot);
        let normal_waits = if snapshot.locks.is_known() {
            let waits = NormalWaits::of(&graph, &leases, &snapshot, &index);
            waits.hold_back(&mut graph);
            Arc::new(waits)
        } else {
            Arc::clone(&before.normal_waits)
        };
        let past = &mut self.past;
        past.series = Arc::clone(&series);
        past.deadlocks.observe(&snapshot, &graph, &index);
        past.new_roots.observe(&graph, snapshot.taken_at);
        let tasks = past.watch.evaluate(&snapshot, &self.thresholds);
        let mut view = View {
            id: before.id + 1,
            link: ConnectionState::Live,
            held_since: past.held.observe(&snapshot),
            lock_waits: past.waits.observe(&snapshot, &graph, &index, &before.lock_names),
            runs_since: Arc::new(held::runs(&tasks, &snapshot)),
            tasks: Arc::new(tasks),
            leases: Arc::new(leases),
            normal_waits,
            queue: Arc::new(work_queue::QueueBoard::of(&snapshot, &self.thresholds)),
            adapters: Arc::new(adapters),
            graph,
            index,
            series,
            snapshot: Some(Arc::new(snapshot)),
            ..View::clone(before)
        };
        self.judge(&mut view);
        self.view = Arc::new(view);
        self.view()
    }

    /// Takes the first of two snapshots, which is not shown. A key that is free in both has been free since its holder was last
    /// alive.
    pub(super) fn seen_before(&mut self, snapshot: &Snapshot) {
        self.past.adapters.evaluate(snapshot, &self.thresholds);
    }

    fn judge(&mut self, after: &mut View) {
        let Some(seen) = after.with_snapshot() else { return };
        let CarriedState { deadlocks, new_roots, .. } = &self.past;
        let tick = self.counter.as_mut().and_then(|counter| counter.update(seen, deadlocks));
        let blame = tick.map(|tick| {
            let mut blame = Blame::clone(&after.blame);
            blame.advance(tick, &after.graph);
            Arc::new(blame)
        });
        let input = CheckInput { view: seen, deadlocks, new_roots, thresholds: &self.thresholds };
        let mut findings = finding::find(&input);
        // These are the least important findings, so they come last.
        findings.extend(server::lock_name_notes(&self.notes));
        let events = self.diff.as_mut().map(|diff| {
            let was_down = matches!(self.view.link, ConnectionState::Down { .. });
            let change =
                SnapshotChange { before: self.view.with_snapshot(), after: seen, was_down, deadlocks };
            with(&after.events, seen.snapshot.taken_at, diff.compare(&change))
        });
        after.findings = Arc::new(findings);
        after.blame = blame.unwrap_or_else(|| Arc::clone(&after.blame));
        after.events = events.unwrap_or_else(|| Arc::clone(&after.events));
    }

    fn name_jobs(&mut self, jobs: &adapter::AdapterBoard, snapshot: &Snapshot) {
        let Some(server) = snapshot.server() else { return };
        let names = jobs.key_names(snapshot);
        if let Some(names) = self.view.lock_names.with_running(&server.database, names) {
            self.view = Arc::new(View { lock_names: Arc::new(names), ..View::clone(&self.view) });
        }
    }

    /// Adds events from outside the poll.
    pub(crate) fn events_received(&mut self, entries: impl IntoIterator<Item = ReceivedEvent>) -> Arc<View> {
        let mut events = Arc::clone(&self.view.events);
        for ReceivedEvent { event, when } in entries {
            let ExternalEvent { kind, severity, text, subject } = event;
            let at = self.server_time(when);
            if let (Some(counter), EventKind::ActionResult, Severity::Info, Some(Subject::Backend(session))) =
                (&mut self.counter, kind, severity, &subject)
            {
                counter.acted(*session, &text);
            }
            events =
                with(&events, at, vec![EventBody { subject, ..EventBody::new(at, kind, severity, text) }]);
        }
        self.view = Arc::new(View { id: self.view.id + 1, events, ..View::clone(&self.view) });
        self.view()
    }

    /// The server time at a local time. Before the first snapshot, the clock of this machine.
    fn server_time(&self, when: Instant) -> Timestamp {
        let Some((taken_at, came)) = self.clocks else { return clock::wall() };
        let since = |later: Instant, earlier: Instant| {
            chrono::TimeDelta::from_std(later.saturating_duration_since(earlier)).unwrap_or_default()
        };
        taken_at + since(when, came) - since(came, when)
    }

    /// Marks the last snapshot as stale; the next attempt to connect is made after `wait`.
    pub fn link_lost(&mut self, reason: &str, attempt: u32, wait: Duration) -> Arc<View> {
        self.past.held.forget();
        self.past.new_roots.forget();
        if let Some(counter) = &mut self.counter {
            counter.gap();
        }
        let at = self.server_time(clock::monotonic());
        // A further failed attempt is not an event.
        let is_news = !matches!(self.view.link, ConnectionState::Down { .. });
        let lost = is_news.then(|| {
            // The poll's message may start with the same words.
            let why = reason.strip_prefix("connection lost: ").unwrap_or(reason);
            let text = format!("the connection was lost: {why}");
            let body = EventBody::new(at, EventKind::LinkLost, Severity::Warning, text);
            EventBody { subject: Some(Subject::Server), ..body }
        });
        let events = with(&self.view.events, at, lost.into_iter().collect());
        let link = ConnectionState::Down { reason: reason.into(), attempt, wait };
        self.view = Arc::new(View { id: self.view.id + 1, link, events, ..View::clone(&self.view) });
        self.view()
    }
}

fn input(snapshot: &Snapshot) -> Input<'_> {
    Input {
        locks: snapshot.locks.last_rows(),
        backends: snapshot.backends.last_rows(),
        answers: &snapshot.answers,
        is_partial: snapshot.locks_omitted > 0,
        own_pid: snapshot.server().map(|server| server.own_pid),
    }
}

fn with(events: &Arc<Events>, seen: Timestamp, bodies: Vec<EventBody>) -> Arc<Events> {
    if bodies.is_empty() {
        return Arc::clone(events);
    }
    let mut events = Events::clone(events);
    events.extend(seen, bodies);
    Arc::new(events)
}

/// Adds the Redis locks to a snapshot, with their read time converted to the server's clock.
fn join(snapshot: &mut Snapshot, state: &RedisState) {
    let age = state.read.and_then(|read| chrono::TimeDelta::from_std(read.elapsed()).ok());
    // Microseconds, like the server's timestamps; a stored snapshot has no more.
    let read_at = age.map(|age| (snapshot.taken_at - age).trunc_subsecs(6));
    let redis = Arc::new(RedisLeases { read_at, ..RedisLeases::clone(&state.leases) });
    snapshot.sources = Arc::new(SourceTables { redis, ..SourceTables::clone(&snapshot.sources) });
}

#[cfg(test)]
mod tests;

// Computes blame from stored snapshots without it: those of an older release, and those with hashed names.

/// Counts snapshot by snapshot. It does not know how an episode ended.
#[derive(Debug, Default)]
pub struct Recount {
    counter: Counter,
    counted: Arc<Blame>,
}

impl Recount {
    /// `refresh` is the usual time between snapshots, in seconds.
    pub fn new(refresh: f64) -> Self {
        let mut counter = Counter::default();
        counter.refresh(refresh);
        Self { counter, counted: Arc::default() }
    }

    /// The blame up to and including a snapshot. Snapshots must come in order.
    pub fn count(&mut self, view: &View) -> Arc<Blame> {
        let seen = view.with_snapshot();
        let tick = seen.and_then(|seen| self.counter.update(seen, &Deadlocks::default()));
        if let Some(tick) = tick {
            Arc::make_mut(&mut self.counted).advance(tick, &view.graph);
        }
        Arc::clone(&self.counted)
    }
}

/// The series with what was refused by now, and without what is older than the window.
fn refused(series: &mut Series, at: Timestamp, systems: &SourceTables) {
    let is_recent = |then: Timestamp| then < at && (at - then).as_seconds_f64() <= WINDOW;
    series.refusals.retain(|sample| sample.at.is_some_and(is_recent));
    // A table that is not known this time would look like a counter that started again.
    let rows = systems.refusals.iter().map(|table| match table.section.observed() {
        Observed::Read(rows) => rows.first().cloned(),
        _ => None,
    });
    let rows: Option<Vec<Refusals>> = rows.collect();
    let sum = rows.into_iter().flatten().reduce(|sum, row| sum.plus(&row));
    series.refusals.extend(sum.filter(Refusals::is_known).map(|sum| Refusals { at: Some(at), ..sum }));
}

fn extended(series: &Series, at: Timestamp, graph: &WaitGraph, minutes: u32) -> Series {
    let oldest = at - chrono::TimeDelta::minutes(i64::from(minutes));
    let start = series.samples.partition_point(|sample| sample.at < oldest);
    let kept = series.samples.get(start..).unwrap_or_default();
    let mut samples = Vec::with_capacity(kept.len() + 1);
    // If the clock was set back, earlier samples may be in the future.
    samples.extend(kept.iter().filter(|sample| sample.at < at));
    samples.push(Sample { at, waiting: graph.waiting });
    let waiting_since =
        (graph.waiting > 0).then(|| series.waiting_since.unwrap_or_else(|| began(graph).unwrap_or(at)));
    Series { samples, waiting_since, refusals: series.refusals.clone() }
}

fn began(graph: &WaitGraph) -> Option<Timestamp> {
    graph.queues.iter().flat_map(|queue| &queue.waiters).filter_map(|waiter| waiter.wait_start).min()
}
