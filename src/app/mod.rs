//! The state of the screens, and how messages change it.
//!
//! Pure: no clock, no input or output. Tests send messages and check the state and the requested effects; drawing only
//! reads. Selection is by identity, never by position: the selected row stays selected when the order changes, and when
//! it disappears nothing is selected until the next move.

pub mod context;
pub mod detail;
pub mod dialog;
pub mod filter;
pub mod help;
pub mod keymap;
pub mod line;
pub mod message;
pub mod page;
pub mod pane;
pub mod panes;
pub mod print;
pub mod related;
pub mod screens;
pub mod settings;
mod steady;
pub mod strip;
pub mod subject;
pub mod time;
mod update;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use context::{Context, ViewIndex};
use dialog::{Dialog, PendingAction};
use line::Line;
use page::{Page, Prompt};
use pane::PaneState;
use panes::{Pane, PaneMap, RowId};
use screens::{AvailablePanes, Screen};
pub use settings::AppSettings;
use update::PendingStep;
pub use update::ReplayState;

use super::model::finding::Alerts;
use super::model::past::PastView;
use super::model::thresholds::ExpectedBlocker;
use crate::model::Timestamp;
use crate::model::adapter::Parts;
use crate::model::backend::BackendId;
use crate::model::blame::{BlameGrouping, BlamePeriod};
use crate::model::plan::PlanContext;
use crate::model::view::{ConnectionState, Slowed, View};
use crate::model::zone::Zone;

/// The smallest terminal with a layout; a smaller one shows only how to exit. All panes of a screen fit from 80x24 on;
/// a smaller terminal shows as many as fit.
pub const SMALLEST: (u16, u16) = (60, 15);

/// Minimum width for two panes side by side.
pub const WIDE: u16 = 120;

/// Minimum number of rows of a pane: its title, the headings, and two rows.
const PANE_ROWS: u16 = 4;

/// Rows of the header: the server, and the number of waiting sessions.
pub const HEADER: u16 = 2;

/// Minimum height at which all panes of the Overview are expanded; below it only one is, below the findings.
pub const TALL: u16 = 30;

/// Minimum height for a third pane on the Locks screen; below it Tab leads to that pane.
const THIRD: u16 = 35;

/// Minimum height for a strip of three rows below the panes of the Chains and Locks screens.
const STRIP: u16 = 24;

/// Minimum width and height for the details of the row under the cursor on the right side.
pub const DETAIL: (u16, u16) = (160, 40);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    /// Ticks for which it remains; `None`: until a key is pressed after it was seen.
    pub ticks: Option<u8>,
    /// A frame with it was on the screen.
    pub seen: bool,
}

#[derive(Debug, Clone)]
pub struct Origin {
    pub screen: Screen,
    pub focus: Pane,
    /// The findings or the page of a row, if the jump began there.
    pub page: Option<Page>,
    /// Whether the Locks screen showed all types: a jump to a lock that is not an advisory lock shows them.
    pub all_locks: bool,
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that a key turns, independent of the others"
)]
pub struct App {
    pub settings: AppSettings,
    /// The view that the screens show; `None` before the first.
    pub view: Option<Arc<View>>,
    /// The newest view, while the screens are paused or show the past.
    pub latest: Option<Arc<View>>,
    /// What the screens show, if it is not the live state.
    pub past: Option<Arc<PastView>>,
    /// A recording is shown instead of a server.
    pub replay: Option<ReplayState>,
    /// A step to another snapshot is in progress.
    going: Option<PendingStep>,
    /// The screens are paused: newer views wait in `latest`.
    pub paused: bool,
    pub index: ViewIndex,
    pub screen: Screen,
    /// The screen was restored from the layout: if the server has no data for it, the Overview is shown.
    only_if_there: bool,
    pub focus: Pane,
    pub zoom: bool,
    /// The Locks screen shows all lock types, not only advisory locks.
    pub all_locks: bool,
    pub blamed: (BlameGrouping, BlamePeriod),
    pub pages: Vec<Page>,
    pub prompt: Option<Prompt>,
    /// The dialog over everything else, which must be answered first.
    pub dialog: Option<Dialog>,
    /// Process ids of locktop's own sessions except the one that polls: locktop never acts on them.
    pub own_pids: Vec<i32>,
    terminated: Vec<BackendId>,
    pub pending_actions: Vec<PendingAction>,
    pub jumped_from: Option<Origin>,
    pub expected: Arc<[ExpectedBlocker]>,
    pub follow: Option<RowId>,
    steady: steady::StableFindings,
    /// Time of the newest snapshot when a key was last pressed on the findings; `None` before the first key.
    findings_read: Option<Timestamp>,
    /// New critical findings, for a user who does not watch the screen.
    alerts: Alerts,
    /// The title of the terminal's window; empty before the first view, and if no title is wanted.
    title: String,
    /// Requested number of seconds between two polls.
    pub interval: f64,
    /// Seconds since the newest view arrived, at the last tick.
    pub silence: f64,
    /// Seconds until the next attempt to connect, while disconnected.
    pub retry: f64,
    pub wrap: bool,
    /// The terminal reports the mouse: locktop, not the terminal, handles what it selects.
    pub mouse: bool,
    pub notice: Option<Notice>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Number of rows for a page down, set by drawing.
    pub page_rows: usize,
    /// Number of visible rows of the table with the focus, without regard to pages over it.
    pub table_rows: usize,
    panes: PaneMap<PaneState>,
    /// The target had a lease, or a lease table that cannot be read. It stays set, because panes that appear and disappear
    /// would move the others.
    lease_seen: bool,
    shown: Parts,
    stale: Vec<Pane>,
    /// The last number given to a request, a command or a dialog.
    number: u64,
}

impl App {
    pub fn new(mut settings: AppSettings, interval: f64) -> Self {
        if settings.read_only {
            settings.keymap = settings.keymap.read_only();
        }
        Self {
            expected: Arc::clone(&settings.expected),
            settings,
            focus: Pane::Findings,
            interval,
            wrap: true,
            size: (80, 24),
            page_rows: 10,
            table_rows: 10,
            stale: Pane::ALL.to_vec(),
            ..Self::default()
        }
    }

    pub(in crate::app) fn plan_context<'a>(&'a self, view: &'a View) -> PlanContext<'a> {
        let (own_pids, terminated) = (&self.own_pids, &self.terminated);
        PlanContext { view, rights: view.rights.as_deref(), own_pids, terminated }
    }

    /// Also for a pane that is not on the screen.
    pub fn pane(&self, pane: Pane) -> &PaneState {
        self.panes.get(pane)
    }

    fn pane_mut(&mut self, pane: Pane) -> &mut PaneState {
        self.panes.get_mut(pane)
    }

    pub fn context(&self) -> Option<Context<'_>> {
        Context::of(self.view.as_deref()?, &self.index, self.settings.zone)
    }

    /// The panes that fit on the screen, which include the one with the focus.
    pub fn visible_panes(&self) -> Vec<Pane> {
        let panes = self.panes();
        if self.zoom {
            return vec![self.focus];
        }
        // The Overview has at least a title line for each pane.
        if self.screen == Screen::Overview {
            return panes;
        }
        let is_low = self.screen == Screen::Locks && self.size.1 < THIRD;
        let most = if is_low { 2 } else { self.room_for_panes() };
        let mut shown: Vec<Pane> = panes.iter().copied().take(most).collect();
        if panes.contains(&self.focus) && !shown.contains(&self.focus) {
            shown.pop();
            shown.push(self.focus);
        }
        shown
    }

    fn room_for_panes(&self) -> usize {
        let body = self.size.1.saturating_sub(HEADER + 1);
        let stacked = usize::from(body / PANE_ROWS);
        let room = if self.size.0 < WIDE {
            stacked
        } else {
            // One pane above, two side by side below it, and two in place of the second of these.
            match stacked {
                0 | 1 => stacked,
                2 => 3,
                _ => 4,
            }
        };
        room.max(1)
    }

    /// The panes of the current screen, in the order of Tab.
    pub fn panes(&self) -> Vec<Pane> {
        self.screen.panes(self.has())
    }

    /// The tables that exist: a missing table has no pane and no screen.
    pub fn has(&self) -> AvailablePanes {
        let mut has = self.view.as_deref().map(AvailablePanes::of).unwrap_or_default();
        has.lease_seen = self.lease_seen;
        has
    }

    /// The newest view, whatever is shown.
    pub(super) fn newest(&self) -> Option<&Arc<View>> {
        self.latest.as_ref().or(self.view.as_ref())
    }

    /// The state of the connection by the newest view, even while the screen is paused.
    pub fn link(&self) -> ConnectionState {
        self.newest().map_or(ConnectionState::Connecting, |view| view.link.clone())
    }

    /// The title for the terminal's window; `None` if no title is wanted.
    pub fn title(&self) -> Option<&str> {
        Some(self.title.as_str()).filter(|title| !title.is_empty())
    }

    /// Set if polls are less frequent than requested, by the newest view.
    pub fn slowed(&self) -> Option<Slowed> {
        self.newest()?.slowed
    }

    pub fn detail_lines(&self, subject: RowId, width: usize) -> Option<Vec<Line>> {
        detail::lines(&self.context()?, subject, width, self.wrap)
    }

    /// The pane of the Overview that is expanded below the findings if there is no room for all.
    pub fn expanded(&self) -> Option<Pane> {
        let below = || self.panes().into_iter().filter(|pane| *pane != Pane::Findings);
        below().find(|pane| *pane == self.focus).or_else(|| below().next())
    }

    pub fn shows_detail(&self) -> bool {
        self.screen == Screen::Overview && !self.zoom && self.size.0 >= DETAIL.0 && self.size.1 >= DETAIL.1
    }

    pub fn has_strip_below(&self) -> bool {
        matches!(self.screen, Screen::Chains | Screen::Locks) && !self.zoom && self.size.1 >= STRIP
    }

    /// The position of the row in another pane that the finding under the cursor is about, among the rows near the top.
    pub fn marked(&self, pane: Pane) -> Option<usize> {
        const MOST: usize = 2_000;
        let finding = self.pane(Pane::Findings).selected.filter(|_| self.focus == Pane::Findings)?;
        let context = self.context().filter(|_| pane != Pane::Findings)?;
        let wanted = subject::subject_of(&context, finding)?;
        let state = self.pane(pane);
        (0..state.rows.len().min(MOST)).find(|at| {
            state.id_at(&context, *at).is_some_and(|id| subject::same_subject(&context, id, wanted))
        })
    }

    fn with_pane<T>(&mut self, pane: Pane, act: impl FnOnce(&mut PaneState, &Context<'_>) -> T) -> Option<T> {
        let state = self.panes.get_mut(pane);
        let context = Context::of(self.view.as_deref()?, &self.index, self.settings.zone)?;
        Some(act(state, &context))
    }

    /// Updates the panes on the screen; the others are updated when they are shown.
    fn refresh_panes(&mut self) {
        let (all_locks, seen) = (self.all_locks, self.table_rows);
        let mut panes = self.visible_panes();
        if panes.contains(&Pane::Episodes) && !panes.contains(&Pane::Blame) {
            // The episodes belong to a line of the Blame pane.
            panes.insert(0, Pane::Blame);
        }
        for pane in panes {
            self.take_blame(pane);
            if let Some(at) = self.stale.iter().position(|stale| *stale == pane) {
                self.stale.swap_remove(at);
                self.with_pane(pane, |state, context| state.rebuild(all_locks, seen, context));
                self.go_to_followed(pane);
            }
        }
    }

    /// Updates the data of the panes of the Blame screen if it is out of date.
    fn take_blame(&mut self, pane: Pane) {
        let (group, span) = self.blamed;
        let selected = match self.panes.get(Pane::Blame).selected {
            Some(RowId::Blamed(id)) => Some(id),
            _ => None,
        };
        let Some(view) = self.view.as_ref() else { return };
        let shown = &mut self.index.blame;
        match pane {
            Pane::Blame if self.stale.contains(&pane) => shown.take_rows(&view.blame, group, span),
            Pane::Episodes => {
                if shown.of != selected && !self.stale.contains(&pane) {
                    self.stale.push(pane);
                }
                if self.stale.contains(&pane) {
                    shown.take_episodes(&view.blame, selected);
                }
            }
            _ => {}
        }
    }

    fn invalidate(&mut self) {
        self.stale = Pane::ALL.to_vec();
    }

    fn go_to_followed(&mut self, pane: Pane) -> bool {
        let Some(followed) = self.follow else { return false };
        let found = self.with_pane(pane, |state, context| {
            state.select_where(context, |id| subject::same_subject(context, id, followed))
        });
        found.unwrap_or(false)
    }
}

impl<'a> Context<'a> {
    /// `None` before the first snapshot.
    pub(in crate::app) fn of(view: &'a View, index: &'a ViewIndex, zone: Zone) -> Option<Self> {
        Some(Self { view, snapshot: view.snapshot.as_deref()?, index, names: &view.lock_names, zone })
    }
}
