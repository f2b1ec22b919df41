//! A view that arrives, and its age.

use std::sync::Arc;

use crate::app::context::ViewIndex;
use crate::app::message::{Effect, Update};
use crate::app::panes::Pane;
use crate::app::screens::Screen;
use crate::app::{App, Notice};
use crate::model::finding::AlertWays;
use crate::model::finding::{Finding, Severity};
use crate::model::snapshot::Snapshot;
use crate::model::view::{Link, View};

/// Seconds for which findings keep their places after a key press on them.
const READ: f64 = 10.0;

/// Seconds beyond the interval without a new view, after which the data is stale.
const TIMEOUT: f64 = 2.0;

/// The longest notification, in columns. Terminals and desktops cut longer ones.
const LONGEST: usize = 160;

impl App {
    /// Whether the newest data is older than it should be. Always false while the past is shown.
    pub fn is_stale(&self) -> bool {
        self.past.is_none() && (self.silence > self.apart() + TIMEOUT || !matches!(self.link(), Link::Live))
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
            Link::Live if self.is_news(&view) => self.silence = 0.0,
            // The same attempt can be reported again, for example with a new event.
            Link::Down { wait, .. } if view.link != self.link() => self.retry = wait.as_secs_f64(),
            Link::Live | Link::Down { .. } | Link::Connecting => {}
        }
        let view = self.steadied(view);
        let apart = self.apart();
        let alerts = if view.link == Link::Live { self.alert(&view) } else { Vec::new() };
        if self.past.is_some() || (self.paused && self.context().is_some()) {
            self.latest = Some(view);
        } else {
            self.show(view);
        }
        if let Some(slowed) = self.slowed().filter(|slowed| slowed.interval > apart) {
            self.say(format!(
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
        let new = self.alerts.look(&view.findings, snapshot.taken_at);
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
        |snapshot: &Arc<Snapshot>| snapshot.systems.leases.iter().any(|table| table.section.error.is_some());
    !view.leases.rows.is_empty() || view.snapshot.as_ref().is_some_and(unread)
}
