//! A view that arrives, and its age; the view of another time, in the history or a recording.

use std::sync::Arc;

use crate::app::context::ViewIndex;
use crate::app::message::{Effect, Update};
use crate::app::page::PromptKind;
use crate::app::panes::Pane;
use crate::app::screens::Screen;
use crate::app::{App, Notice, time};
use crate::model::Timestamp;
use crate::model::finding::AlertWays;
use crate::model::finding::{Finding, Severity};
use crate::model::past::{Incident, PastView, TimeStep};
use crate::model::snapshot::Snapshot;
use crate::model::view::{ConnectionState, View};

/// Seconds for which findings keep their places after a key press on them.
const READ: f64 = 10.0;

/// Seconds beyond the interval without a new view, after which the data is stale.
const TIMEOUT: f64 = 2.0;

/// The longest notification, in columns. Terminals and desktops cut longer ones.
const LONGEST: usize = 160;

impl App {
    /// Whether the newest data is older than it should be. Always false while the past is shown.
    pub fn is_stale(&self) -> bool {
        self.past.is_none()
            && (self.silence > self.apart() + TIMEOUT || !matches!(self.link(), ConnectionState::Live))
    }

    /// The effective poll interval, in seconds.
    pub(super) fn apart(&self) -> f64 {
        self.slowed().map_or(self.interval, |slowed| slowed.interval.max(self.interval))
    }

    /// Whether the view has a new snapshot. A view that only adds an event keeps the previous snapshot.
    pub fn is_news(&self, view: &View) -> bool {
        let newest = self.newest().and_then(|view| view.snapshot.as_ref());
        !matches!((newest, &view.snapshot), (Some(old), Some(new)) if Arc::ptr_eq(old, new))
    }

    pub(super) fn view_arrived(&mut self, view: Arc<View>) -> Update {
        match &view.link {
            ConnectionState::Live if self.is_news(&view) => self.silence = 0.0,
            // The same attempt can be reported again, for example with a new event.
            ConnectionState::Down { wait, .. } if view.link != self.link() => self.retry = wait.as_secs_f64(),
            ConnectionState::Live | ConnectionState::Down { .. } | ConnectionState::Connecting => {}
        }
        let view = self.steadied(view);
        let apart = self.apart();
        let alerts = if view.link == ConnectionState::Live { self.alert(&view) } else { Vec::new() };
        if self.past.is_some() || (self.paused && self.context().is_some()) {
            self.latest = Some(view);
        } else {
            self.show(view);
        }
        if let Some(slowed) = self.slowed().filter(|slowed| slowed.interval > apart) {
            self.show_note(format!(
                "refreshing every {}s: reading pg_locks takes the server {:.0} ms (server_load in the config)",
                slowed.interval,
                slowed.cost * 1000.0
            ));
        }
        let mut update = self.refresh_dialog();
        update.effects.extend(alerts);
        update
    }

    pub(super) fn steadied(&mut self, view: Arc<View>) -> Arc<View> {
        let Some(at) = view.snapshot.as_deref().map(|snapshot| snapshot.taken_at) else { return view };
        let is_read =
            self.findings_read.is_some_and(|read| (0.0..READ).contains(&(at - read).as_seconds_f64()));
        let findings = self.steady.arrange(&view.findings, at, is_read);
        Arc::new(View { findings, ..View::clone(&view) })
    }

    /// Shows a view; the selection stays on the same subjects.
    pub(super) fn show(&mut self, view: Arc<View>) {
        self.latest = None;
        let is_first = self.context().is_none();
        let same = match (&self.view, &view.snapshot) {
            (Some(old), Some(new)) => old.snapshot.as_ref().is_some_and(|old| Arc::ptr_eq(old, new)),
            _ => false,
        };
        if !same {
            self.index = ViewIndex::of(&view);
            self.invalidate();
        } else if self.view.as_ref().is_some_and(|old| !Arc::ptr_eq(&old.events, &view.events)) {
            // An event was added between two snapshots.
            self.stale.push(Pane::Events);
        }
        let is_another = self.view.as_ref().is_some_and(|old| old.target != view.target);
        self.lease_seen = (self.lease_seen && !is_another) || has_lease(&view);
        self.view = Some(view);
        if self.only_if_there && self.context().is_some() {
            self.only_if_there = false;
            if !self.screen.is_there(self.has()) {
                self.screen = Screen::Overview;
            }
        }
        self.keep_focus();
        self.refresh_panes();
        if is_first && self.screen == Screen::Locks {
            self.focus_lock();
        }
    }

    /// Keeps the focus on a pane of the screen, also when the task tables appear or disappear.
    pub(in crate::app) fn keep_focus(&mut self) {
        let panes = self.panes();
        if let Some(first) = panes.first()
            && !panes.contains(&self.focus)
        {
            self.focus = *first;
            self.zoom = false;
        }
    }

    pub(super) fn tick(&mut self, silence: f64) -> Update {
        let (before, was_stale) = (self.silence, self.is_stale());
        self.retry = (self.retry - (silence - before).max(0.0)).max(0.0);
        self.silence = silence;
        let mut redraw =
            self.is_stale() != was_stale || (self.is_stale() && before.floor() < silence.floor());
        if let Some(Notice { ticks: Some(ticks), .. }) = &mut self.notice {
            *ticks = ticks.saturating_sub(1);
            if *ticks == 0 {
                self.notice = None;
                redraw = true;
            }
        }
        Update { effects: Vec::new(), redraw }
    }

    pub(super) fn alert(&mut self, view: &View) -> Vec<Effect> {
        let ways = self.settings.notify;
        let Some(snapshot) = view.snapshot.as_deref().filter(|_| ways != AlertWays::default()) else {
            return Vec::new();
        };
        let mut effects = Vec::new();
        let new = self.alerts.next_new(&view.findings, snapshot.taken_at);
        if let Some(finding) = new.filter(|_| ways.bell || ways.osc9 || ways.osc777) {
            let text = format!("{}: {}", self.settings.target, finding.short);
            effects.push(Effect::Alert(ways, harmless(&text)));
        }
        if ways.title {
            effects.extend(self.retitle(view));
        }
        effects
    }

    fn retitle(&mut self, view: &View) -> Option<Effect> {
        let critical = |finding: &&Finding| finding.severity == Severity::Critical && finding.ended.is_none();
        let worst = view.findings.iter().find(critical);
        let target = &self.settings.target;
        let title = match worst {
            Some(worst) => format!("CRIT {} · {target}", worst.short),
            None => format!("locktop {target}"),
        };
        let title = harmless(&title);
        if self.title == title {
            return None;
        }
        self.title.clone_from(&title);
        Some(Effect::Title(title))
    }
}

/// One line without control characters, so that it neither ends nor starts an escape sequence.
fn harmless(text: &str) -> String {
    crate::text::fit(&crate::text::one_line(text), LONGEST).into_owned()
}

/// Whether there are leases, or a lease table that cannot be read.
fn has_lease(view: &View) -> bool {
    let unread =
        |snapshot: &Arc<Snapshot>| snapshot.sources.leases.iter().any(|table| table.section.error.is_some());
    !view.leases.rows.is_empty() || view.snapshot.as_ref().is_some_and(unread)
}

#[derive(Debug, Clone, Copy, Default)]
pub(in crate::app) struct PendingStep {
    /// The next step, from keys pressed meanwhile.
    then: Option<TimeStep>,
    open: Option<(u64, u32)>,
    /// Whether to show what the trouble of that snapshot was.
    shows_notice: bool,
    /// The time that was typed.
    asked: Option<Timestamp>,
    is_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayState {
    /// Playback speed as a multiple of the original.
    pub speed: f64,
    pub plays: bool,
}

impl App {
    pub fn replay_at(&mut self, speed: Option<f64>) {
        self.replay = Some(ReplayState { speed: speed.unwrap_or(1.0), plays: speed.is_some() });
        self.settings.history = true;
        self.settings.keymap = std::mem::take(&mut self.settings.keymap).in_recording();
    }

    pub(super) fn play_or_stop(&mut self) -> Update {
        let Some(replay) = &mut self.replay else { return Update::none() };
        replay.plays = !replay.plays;
        Update::effect(Effect::Play(replay.plays.then_some(replay.speed)))
    }

    pub(super) fn change_speed(&mut self, faster: bool) -> Update {
        let Some(replay) = &mut self.replay else { return Update::none() };
        replay.speed = (if faster { replay.speed * 2.0 } else { replay.speed / 2.0 }).clamp(0.25, 64.0);
        Update::effect(Effect::Play(replay.plays.then_some(replay.speed)))
    }

    pub(super) fn step_in_time(&mut self, step: TimeStep) -> Update {
        if !self.settings.history {
            return self.show_note("the history is off: see [history] in the config");
        }
        if let Some(going) = &mut self.going {
            going.then = Some(match (going.then, step) {
                (Some(TimeStep::Snapshots(one)), TimeStep::Snapshots(other)) => {
                    TimeStep::Snapshots(one.saturating_add(other))
                }
                (Some(TimeStep::Seconds(one)), TimeStep::Seconds(other)) => {
                    TimeStep::Seconds(one.saturating_add(other))
                }
                (_, step) => step,
            });
            return Update::none();
        }
        self.leave(step, PendingStep::default())
    }

    fn leave(&mut self, step: TimeStep, going: PendingStep) -> Update {
        let Some(view) = self.view.as_ref().filter(|view| view.snapshot.is_some()) else {
            return self.show_note("no snapshot yet");
        };
        let from = view.id;
        let tells = matches!(step, TimeStep::IncidentBefore | TimeStep::NextIncident);
        let asked = if let TimeStep::Time(at) = step { Some(at) } else { None };
        self.going = Some(PendingStep { shows_notice: tells, asked, ..going });
        Update { effects: vec![Effect::Go { from, step }], redraw: false }
    }

    /// A requested snapshot has arrived; `None` if it is the newest one.
    pub(super) fn arrived(&mut self, answer: Result<Option<Arc<PastView>>, String>) -> Update {
        let PendingStep { then, open, shows_notice: tells, asked, is_off } =
            self.going.take().unwrap_or_default();
        let mut update = match answer {
            _ if is_off => Update::none(),
            Ok(Some(past)) => {
                let taken_at = past.view.snapshot.as_ref().map(|snapshot| snapshot.taken_at);
                let is_first = asked.zip(taken_at).is_some_and(|(asked, taken_at)| asked < taken_at);
                let is_replay = self.replay.is_some();
                let begins = if is_replay { "the recording begins here" } else { "the history begins here" };
                let said = is_first.then(|| begins.to_owned());
                let said = said.or_else(|| tells.then(|| incident_of(&past)).flatten());
                self.show_past(past);
                said.map_or_else(Update::redraw, |said| self.show_note(said))
            }
            // An event of the newest snapshot is opened where it is.
            Ok(None) if open.is_none() && self.replay.is_some() => self.show_note("the recording ends here"),
            Ok(None) if open.is_none() => self.back_to_now(),
            Ok(None) => Update::redraw(),
            Err(_) if open.is_some() => Update::redraw(),
            Err(why) => self.show_note(why),
        };
        if let Some((number, count)) = open {
            update.effects.extend(self.open_event(number, count).effects);
        }
        if let Some(step) = then {
            update.effects.extend(self.leave(step, PendingStep::default()).effects);
        }
        update
    }

    fn show_past(&mut self, past: Arc<PastView>) {
        let newest = self.newest().cloned();
        self.paused = false;
        self.show(Arc::clone(&past.view));
        (self.latest, self.past) = (newest, Some(past));
    }

    /// Shows the newest view again, and cancels a pending request.
    pub(super) fn back_to_now(&mut self) -> Update {
        if let Some(going) = &mut self.going {
            *going = PendingStep { is_off: true, ..PendingStep::default() };
        }
        if self.past.take().is_some()
            && let Some(newest) = self.latest.take()
        {
            self.show(newest);
        }
        Update::redraw()
    }

    pub(super) fn is_past(&mut self) -> Update {
        let context = self.context();
        let time = context.map(|context| context.time_of_day(context.snapshot.taken_at)).unwrap_or_default();
        self.show_note(format!("this is {time}: Esc returns to live"))
    }

    pub(super) fn start_time(&mut self) -> Update {
        if !self.settings.history {
            return self.step_in_time(TimeStep::Worst);
        }
        self.type_into(PromptKind::Time, String::new())
    }

    /// Parses a typed time. `None` is live.
    pub(super) fn time_typed(&self, text: &str) -> Result<Option<TimeStep>, String> {
        let newest = self.newest().and_then(|view| view.snapshot.as_ref());
        let newest = newest.map(|snapshot| snapshot.taken_at).unwrap_or_default();
        let last = self.past.as_ref().filter(|_| self.replay.is_some()).and_then(|past| past.moments.last());
        let newest = last.map_or(newest, |last| last.at);
        time::parse(text, newest, self.settings.zone)
    }

    pub(super) fn go_to_time(&mut self, text: &str) -> Update {
        match self.time_typed(text) {
            Ok(Some(step)) => {
                let update = self.step_in_time(step);
                Update { redraw: true, ..update }
            }
            // In a recording, its end takes the place of live.
            Ok(None) if self.replay.is_some() => self.step_in_time(TimeStep::Time(Timestamp::MAX_UTC)),
            Ok(None) => self.back_to_now(),
            Err(why) => self.show_note(why),
        }
    }

    /// Goes to the row of an event in the snapshot that saw it, or for an end, in the snapshot before. Goes to the row in the current
    /// view without history, and for an action: what it did is there.
    pub(super) fn go_to_event(&mut self, number: u64, count: u32) -> Update {
        let event = self.view.as_ref().and_then(|view| view.events.get(number));
        let shown = self.view.as_ref().and_then(|view| view.snapshot.as_ref());
        let step = event.filter(|event| !event.kind.is_action()).and_then(|event| {
            match (event.kind.is_end(), event.seen) {
                (true, seen) => Some(TimeStep::Before(seen)),
                (false, seen) => {
                    shown.is_some_and(|shown| shown.taken_at != seen).then_some(TimeStep::Seen(seen))
                }
            }
        });
        match step {
            Some(step) if self.settings.history && self.going.is_none() => {
                self.leave(step, PendingStep { open: Some((number, count)), ..PendingStep::default() })
            }
            _ => self.open_event(number, count),
        }
    }
}

/// The first of the worst events between the previous snapshot and this one, and how many more of them there are.
fn incident_of(past: &PastView) -> Option<String> {
    let trouble = past.moments.get(past.place)?.incident?;
    let before = past.place.checked_sub(1).and_then(|place| past.moments.get(place)).map(|moment| moment.at);
    let since =
        past.view.events.iter().rev().take_while(|event| before.is_none_or(|before| event.seen > before));
    let mut found: Vec<_> = since.filter(|event| Incident::of(event.kind) == Some(trouble)).collect();
    match (found.pop(), trouble) {
        (Some(first), _) if found.is_empty() => Some(first.text()),
        (Some(first), _) => Some(format!("{} · {} more", first.text(), found.len())),
        (None, Incident::NoAnswer) => Some("the server did not answer after this snapshot".to_owned()),
        (None, _) => None,
    }
}
