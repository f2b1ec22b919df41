//! The state of the screens, and how messages change it.
//!
//! Pure: no clock, no input or output. A test feeds messages and looks at the state and at the effects asked
//! for; drawing only reads. Selection is by identity, never by position: what is selected stays selected when the
//! order changes, and when it vanishes nothing is selected until the next move.

pub mod blame;
pub mod context;
pub mod detail;
pub mod dialog;
pub mod filter;
pub mod help;
pub mod index;
pub mod keymap;
pub mod layout;
pub mod line;
pub mod message;
pub mod page;
pub mod pane;
pub mod panes;
pub mod place;
pub mod print;
pub mod related;
pub mod screens;
mod settings;
mod steady;
pub mod strip;
pub mod subject;
pub mod time;
mod update;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use context::Context;
use dialog::{Dialog, Flight};
use index::ViewIndex;
use line::Line;
use page::{Page, Prompt};
use pane::PaneState;
use panes::{Pane, PaneMap, RowId};
use screens::{Has, Screen};
pub use settings::Settings;
use update::Going;
pub use update::Replay;

use crate::model::Timestamp;
use crate::model::adapter::Parts;
use crate::model::alert::Alerts;
use crate::model::backend::BackendId;
use crate::model::blame::{Group, Span};
use crate::model::expected::ExpectedBlocker;
use crate::model::plan::PlanContext;
use crate::model::timeline::PastView;
use crate::model::view::{Link, Slowed, View};

/// The smallest terminal that the screens are laid out for. On a smaller one nothing is shown but how to get out. From
/// 80x24 on all panes of a screen fit; on less it has as many as there is room for.
pub const SMALLEST: (u16, u16) = (60, 15);

/// From this width on two panes stand side by side.
pub const WIDE: u16 = 120;

/// The least rows of a pane: its title, the headings, and two rows.
const PANE_ROWS: u16 = 4;

/// Rows of the header: which server it is, and how many sessions wait.
pub const HEADER: u16 = 2;

/// From so many rows on all panes of the Overview are expanded; on less one is, below the findings.
pub const TALL: u16 = 30;

/// From so many rows on the Locks screen has a third pane; on less Tab leads to it.
const THIRD: u16 = 35;

/// From so many rows on the Chains and the Locks screen have a strip of three rows below their panes.
const STRIP: u16 = 24;

/// From this width and height on the right side shows the details of the row under the cursor.
pub const DETAIL: (u16, u16) = (160, 40);

/// A word to the user, which stands in the footer for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What is said, in one line.
    pub text: String,
    /// Ticks it still stays; none: until somebody who has seen it presses a key.
    pub ticks: Option<u8>,
    /// A frame with it was on the screen.
    pub seen: bool,
}

/// Where a jump began, which Escape leads back to.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The screen that the jump was made on.
    pub screen: Screen,
    /// The pane that the keys went to.
    pub focus: Pane,
    /// The findings, or the page of a row, where it began there.
    pub page: Option<Page>,
    /// Whether the Locks screen had all types: a jump to a lock that is not an advisory one shows them.
    pub all_locks: bool,
}

/// All that the screens are drawn from.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that a key turns, independent of the others"
)]
pub struct App {
    /// What does not change while the program runs.
    pub settings: Settings,
    /// The view that the screens show; none before the first.
    pub view: Option<Arc<View>>,
    /// The newest view, while the screens are held still or show the past.
    pub latest: Option<Arc<View>>,
    /// What the screens show, where that is not now.
    pub past: Option<Arc<PastView>>,
    /// A recording is shown, and no server.
    pub replay: Option<Replay>,
    /// On the way to another look.
    going: Option<Going>,
    /// The screens are held still: newer views wait in `latest`.
    pub paused: bool,
    /// Where the rows of the tables are in `view`.
    pub index: ViewIndex,
    /// The screen that is shown.
    pub screen: Screen,
    /// That screen was only remembered: where the server has nothing for it, the Overview is shown.
    only_if_there: bool,
    /// The pane that the keys go to.
    pub focus: Pane,
    /// Only the pane with the focus is shown.
    pub zoom: bool,
    /// All lock types on the Locks screen, not advisory ones alone.
    pub all_locks: bool,
    /// By what roots are taken together on the Blame screen, and how far back it looks.
    pub blamed: (Group, Span),
    /// What lies over the screen, topmost last.
    pub pages: Vec<Page>,
    /// The line that is being typed.
    pub prompt: Option<Prompt>,
    /// The question that has to be answered first, over everything else.
    pub dialog: Option<Dialog>,
    /// Process ids of our own sessions beside the one that polls: nothing is ever done to them.
    pub own_pids: Vec<i32>,
    /// Sessions that were terminated here, the last ones.
    terminated: Vec<BackendId>,
    /// What was confirmed, and has no report yet.
    pub flights: Vec<Flight>,
    /// Where a jump began: Escape leads back.
    pub jumped_from: Option<Origin>,
    /// Blockers that are expected, in this run.
    pub expected: Arc<[ExpectedBlocker]>,
    /// The row that is followed across screens.
    pub follow: Option<RowId>,
    /// The findings as they are shown.
    steady: steady::Steady,
    /// The time of the newest snapshot when a key was pressed on the findings; none before the first.
    findings_read: Option<Timestamp>,
    /// What has become critical, for whoever does not look.
    alerts: Alerts,
    /// The title of the terminal's window; empty before the first view, and where nobody wants one.
    title: String,
    /// Seconds between two polls, as they were asked for.
    pub interval: f64,
    /// Seconds since the newest view arrived, at the last tick.
    pub silence: f64,
    /// Seconds until the next attempt to connect, while the connection is down.
    pub retry: f64,
    /// Long lines of a detail view are wrapped.
    pub wrap: bool,
    /// The terminal reports the mouse: what it selects is ours, not the terminal's.
    pub mouse: bool,
    /// A word to the user, until it has been there for long enough.
    pub notice: Option<Notice>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Rows that a page down moves over; drawing knows it.
    pub page_rows: usize,
    /// How many rows of the table with the focus are seen, whatever lies over it.
    pub table_rows: usize,
    panes: PaneMap<PaneState>,
    /// The target had a lease, or a table of them that cannot be read. It stays so: panes that come and go would move the others.
    lease_seen: bool,
    /// What the screen shows of the job systems of others, as the poll was told.
    shown: Parts,
    /// Panes that are out of date.
    stale: Vec<Pane>,
    /// The last number that was given to a question, a command or a dialog.
    number: u64,
}

impl App {
    /// Screens without data, as they are before the first view.
    pub fn new(mut settings: Settings, interval: f64) -> Self {
        if settings.read_only {
            settings.keymap = settings.keymap.read_only();
        }
        Self {
            expected: Arc::clone(&settings.expected),
            settings,
            view: None,
            latest: None,
            past: None,
            replay: None,
            going: None,
            paused: false,
            index: ViewIndex::default(),
            screen: Screen::Overview,
            only_if_there: false,
            focus: Pane::Findings,
            zoom: false,
            all_locks: false,
            blamed: Default::default(),
            pages: Vec::new(),
            prompt: None,
            dialog: None,
            own_pids: Vec::new(),
            terminated: Vec::new(),
            flights: Vec::new(),
            jumped_from: None,
            follow: None,
            steady: steady::Steady::default(),
            findings_read: None,
            alerts: Alerts::default(),
            title: String::new(),
            interval,
            silence: 0.0,
            retry: 0.0,
            wrap: true,
            mouse: false,
            notice: None,
            size: (80, 24),
            page_rows: 10,
            table_rows: 10,
            panes: PaneMap::new(PaneState::new),
            lease_seen: false,
            shown: Parts::NONE,
            stale: Pane::ALL.to_vec(),
            number: 0,
        }
    }

    /// The context of a plan for this view.
    pub(in crate::app) fn plan_context<'a>(&'a self, view: &'a View) -> PlanContext<'a> {
        let (own_pids, terminated) = (&self.own_pids, &self.terminated);
        PlanContext { view, rights: view.rights.as_deref(), own_pids, terminated }
    }

    /// The state of a pane's table, also where it is not on the screen.
    pub fn pane(&self, pane: Pane) -> &PaneState {
        self.panes.get(pane)
    }

    fn pane_mut(&mut self, pane: Pane) -> &mut PaneState {
        self.panes.get_mut(pane)
    }

    /// The view with all that is needed to put it into words; none before the first data.
    pub fn context(&self) -> Option<Context<'_>> {
        context(&self.settings, self.view.as_deref(), &self.index)
    }

    /// The panes on the screen now: those that there is room for, the one with the focus among them.
    pub fn visible_panes(&self) -> Vec<Pane> {
        let panes = self.panes();
        if self.zoom {
            return vec![self.focus];
        }
        // The Overview has at least a title line for each.
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

    /// How many panes there is room for.
    fn room_for_panes(&self) -> usize {
        let body = self.size.1.saturating_sub(HEADER + 1);
        let stacked = usize::from(body / PANE_ROWS);
        let room = if self.size.0 < WIDE {
            stacked
        } else {
            // One above, two side by side below it, and two in the place of the second of these.
            match stacked {
                0 | 1 => stacked,
                2 => 3,
                _ => 4,
            }
        };
        room.max(1)
    }

    /// The panes of the screen that is shown, in the order that Tab goes through.
    pub fn panes(&self) -> Vec<Pane> {
        self.screen.panes(self.has())
    }

    /// Which tables there are: without them there is no pane and no screen of them.
    pub fn has(&self) -> Has {
        let there = self.view.as_deref().map(Has::of).unwrap_or_default();
        Has { lease_seen: self.lease_seen, ..there }
    }

    /// How the connection is, by the newest view even while the screen is held still.
    pub fn link(&self) -> Link {
        self.latest.as_ref().or(self.view.as_ref()).map_or(Link::Connecting, |view| view.link.clone())
    }

    /// The title that the terminal's window should have; none where nobody asked for one.
    pub fn title(&self) -> Option<&str> {
        Some(self.title.as_str()).filter(|title| !title.is_empty())
    }

    /// That polls are made less often than asked, by the newest view.
    pub fn slowed(&self) -> Option<Slowed> {
        self.latest.as_ref().or(self.view.as_ref())?.slowed
    }

    /// The lines of the detail page, when one is open and what it is about is still there.
    pub fn detail_lines(&self, subject: RowId, width: usize) -> Option<Vec<Line>> {
        detail::lines(&self.context()?, subject, width, self.wrap)
    }

    /// The pane of the Overview that is expanded below the findings where there is no room for all.
    pub fn expanded(&self) -> Option<Pane> {
        let below = || self.panes().into_iter().filter(|pane| *pane != Pane::Findings);
        below().find(|pane| *pane == self.focus).or_else(|| below().next())
    }

    /// Whether the right side shows the details of the row under the cursor.
    pub fn shows_detail(&self) -> bool {
        self.screen == Screen::Overview && !self.zoom && self.size.0 >= DETAIL.0 && self.size.1 >= DETAIL.1
    }

    /// Whether a strip about the row under the cursor is below the panes.
    pub fn has_strip_below(&self) -> bool {
        matches!(self.screen, Screen::Chains | Screen::Locks) && !self.zoom && self.size.1 >= STRIP
    }

    /// Where the finding under the cursor has its row in another pane, among those that are drawn soon.
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

    /// Does something with a table and the context at once.
    fn with_pane<T>(&mut self, pane: Pane, act: impl FnOnce(&mut PaneState, &Context<'_>) -> T) -> Option<T> {
        let state = self.panes.get_mut(pane);
        let context = context(&self.settings, self.view.as_deref(), &self.index)?;
        Some(act(state, &context))
    }

    /// Brings the panes on the screen up to date; the others wait until they are looked at.
    fn refresh_panes(&mut self) {
        let (all_locks, seen) = (self.all_locks, self.table_rows);
        let mut panes = self.visible_panes();
        if panes.contains(&Pane::Episodes) && !panes.contains(&Pane::Blame) {
            // They are those of a line there.
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

    /// Works out what the panes of the Blame screen have, where it is not so any more.
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

    /// Marks panes as out of date.
    fn invalidate(&mut self) {
        self.stale = Pane::ALL.to_vec();
    }

    fn go_to_followed(&mut self, pane: Pane) -> bool {
        let Some(followed) = self.follow else { return false };
        let found = self.with_pane(pane, |state, context| {
            let found = (0..state.rows.len()).find(|at| {
                state.id_at(context, *at).is_some_and(|id| subject::same_subject(context, id, followed))
            });
            if let Some(at) = found {
                state.select(context, at);
            }
            found.is_some()
        });
        found.unwrap_or(false)
    }
}

fn context<'a>(settings: &'a Settings, view: Option<&'a View>, index: &'a ViewIndex) -> Option<Context<'a>> {
    let view = view?;
    let snapshot = view.snapshot.as_deref()?;
    Some(Context { view, snapshot, index, names: &view.lock_names, zone: settings.zone })
}
