use std::sync::LazyLock;

use super::Action;
use crate::app::screens::Screen;
use crate::model::plan::CommandId;

#[derive(Debug, Clone, Copy)]
pub struct Binding {
    pub action: Action,
    /// Its name in the config's `[keys]`.
    pub name: &'static str,
    /// Default keys, as [`crate::keys::Key::parse`] reads them.
    pub keys: &'static [&'static str],
    pub short: &'static str,
    pub help: &'static str,
    pub group: &'static str,
}

const fn row(
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    short: &'static str,
    help: &'static str,
    group: &'static str,
) -> Binding {
    Binding { action, name, keys, short, help, group }
}

const ACT: &str = "Actions: each asks first";

/// The keys of the screens come from [`crate::app::screens`], those of actions from [`crate::model::plan::CommandId`].
pub static BINDINGS: LazyLock<Vec<Binding>> = LazyLock::new(|| {
    let listed = |bindings: &'static [Binding]| bindings.iter().copied();
    let screens = Screen::ALL.into_iter().map(go);
    let commands = CommandId::ALL.into_iter().map(act);
    listed(MOVE).chain(screens).chain(listed(ROWS)).chain(commands).chain(listed(TIME_AND_PROGRAM)).collect()
});

fn go(screen: Screen) -> Binding {
    let what = screen.definition();
    row(Action::Go(screen), what.name, std::slice::from_ref(&what.key), what.name, what.help, "Screens")
}

fn act(command: CommandId) -> Binding {
    let what = command.definition();
    row(Action::Command(command), what.name, what.keys, what.short, what.help, ACT)
}

const MOVE: &[Binding] = &[
    row(Action::Up, "up", &["up", "k"], "up", "row above", "Move"),
    row(Action::Down, "down", &["down", "j"], "down", "row below", "Move"),
    row(Action::Left, "left", &["left", "h"], "left", "scroll columns left", "Move"),
    row(Action::Right, "right", &["right", "l"], "right", "scroll columns right", "Move"),
    row(Action::PageUp, "page_up", &["pgup", "ctrl-b"], "page up", "page up", "Move"),
    row(Action::PageDown, "page_down", &["pgdn", "ctrl-f"], "page down", "page down", "Move"),
    row(Action::First, "first", &["home", "g"], "first", "first row", "Move"),
    row(Action::Last, "last", &["end", "G"], "last", "last row", "Move"),
    row(Action::Open, "open", &["enter"], "open", "open the selected row", "Move"),
    row(
        Action::Back,
        "back",
        &["esc", "backspace"],
        "back",
        "one step back; clears a filter, then the marks",
        "Move",
    ),
];

const ROWS: &[Binding] = &[
    row(Action::NextPane, "next_pane", &["tab"], "pane", "next pane", "Screens"),
    row(Action::PreviousPane, "previous_pane", &["shift-tab"], "pane", "previous pane", "Screens"),
    row(Action::Zoom, "zoom", &["z"], "zoom", "show only this pane, and back", "Screens"),
    row(Action::Findings, "findings", &["!"], "findings", "all findings; Enter jumps to the row", "Screens"),
    row(Action::Help, "help", &["?", "f1"], "help", "this help", "Screens"),
    row(
        Action::Filter,
        "filter",
        &["/"],
        "filter",
        "filter: text, who:web, db=app, web|batch, !idle, wait>30, \"quoted text\"",
        "Rows",
    ),
    row(
        Action::NextMatch,
        "next_match",
        &["n"],
        "next match",
        "next row that matches the filter; without a filter, a note for Events and the saved recording",
        "Rows",
    ),
    row(
        Action::PreviousMatch,
        "previous_match",
        &["N"],
        "previous match",
        "previous row that matches the filter",
        "Rows",
    ),
    row(Action::Sort, "sort", &["s"], "sort", "choose the column to sort by; again to reverse", "Rows"),
    row(Action::Mark, "mark", &["space"], "mark", "mark the row and go to the next", "Rows"),
    row(
        Action::MarkAll,
        "mark_all",
        &["*"],
        "mark all",
        "mark all rows that match the filter; again to unmark",
        "Rows",
    ),
    row(
        Action::Follow,
        "follow",
        &["f"],
        "follow",
        "follow this session, lock or task on every screen",
        "Rows",
    ),
    row(
        Action::Related,
        "related",
        &["x"],
        "go to",
        "from a row to its root, session, lock, task, item or lease; Esc returns",
        "Rows",
    ),
    row(
        Action::AllLocks,
        "all_locks",
        &["a"],
        "all types",
        "Locks: below, held locks of all types, or only advisory locks",
        "Rows",
    ),
    row(
        Action::BlameBy,
        "blame_by",
        &["b"],
        "by",
        "Blame by root, application, role, database, statement, lock or query tag",
        "Rows",
    ),
    row(
        Action::BlameSpan,
        "blame_span",
        &["v"],
        "span",
        "Blame of the last 5m, 15m, 1h, or everything",
        "Rows",
    ),
    row(
        Action::Copy,
        "copy",
        &["y"],
        "copy",
        "copy the marked process ids, or the text of the open row; for a prepared transaction, the statement that ends it",
        "Rows",
    ),
    row(Action::Wrap, "wrap", &["w"], "wrap", "wrap long lines in the detail view", "Rows"),
];

const TIME_AND_PROGRAM: &[Binding] = &[
    row(Action::LookBack, "look_back", &["["], "step back", "previous snapshot; Esc returns to live", "Time"),
    row(Action::LookOn, "look_on", &["]"], "step on", "next snapshot", "Time"),
    row(Action::MinuteBack, "minute_back", &["{"], "minute back", "a minute back", "Time"),
    row(Action::MinuteOn, "minute_on", &["}"], "minute on", "a minute forward", "Time"),
    row(
        Action::TroubleBefore,
        "trouble_before",
        &["("],
        "last incident",
        "back to the previous incident: a session began to block others, a deadlock, an orphan, a lost connection or an action",
        "Time",
    ),
    row(Action::NextTrouble, "next_trouble", &[")"], "next incident", "forward to the next incident", "Time"),
    row(
        Action::GoToTime,
        "go_to_time",
        &["t"],
        "to a time",
        "to a time: 14:02, 14:02:31, -90s, -5m, worst (most waiting sessions); empty: live",
        "Time",
    ),
    row(
        Action::Save,
        "save",
        &["o"],
        "save",
        "write the history to a file, for locktop replay and locktop report",
        "Time",
    ),
    row(Action::Pause, "pause", &["p"], "pause", "freeze the screen; polling continues", "Time"),
    row(Action::Faster, "faster", &["+", "="], "faster", "refresh more often", "Time"),
    row(Action::Slower, "slower", &["-"], "slower", "refresh less often", "Time"),
    row(Action::Refresh, "refresh", &["r", "ctrl-l"], "refresh", "refresh now and redraw", "Time"),
    row(
        Action::Mouse,
        "mouse",
        &["m"],
        "mouse",
        "mouse on: click rows, headings, findings and shortcuts; mouse off: the terminal selects text",
        "Program",
    ),
    row(Action::Suspend, "suspend", &["ctrl-z"], "suspend", "suspend", "Program"),
    row(Action::Quit, "quit", &["q", "ctrl-c", "f10"], "quit", "quit", "Program"),
];

impl Binding {
    /// The binding in a recording, which has no live state and is not polled.
    pub fn in_recording(self) -> Self {
        let (short, help) = match self.action {
            Action::LookBack => (self.short, "previous snapshot"),
            Action::GoToTime => (
                self.short,
                "to a time: 14:02, 14:02:31, -90s or -5m before the end, worst (most waiting sessions); empty: the end",
            ),
            Action::NextMatch => (self.short, "next row that matches the filter"),
            Action::Pause => ("play, stop", "play or pause"),
            Action::Faster => (self.short, "double the speed, up to 64 times the original"),
            Action::Slower => (self.short, "halve the speed, down to a quarter"),
            Action::Refresh => ("draw", "redraw"),
            _ => (self.short, self.help),
        };
        Self { short, help, ..self }
    }
}

pub fn binding(action: Action) -> Option<&'static Binding> {
    BINDINGS.iter().find(|binding| binding.action == action)
}
