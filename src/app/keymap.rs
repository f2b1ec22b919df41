//! One table of keys: it feeds what a key does, the footer and the help.

use std::collections::BTreeMap;

use crate::keys::{Code, Key};

/// What a key can mean. The names are those of the config's `[keys]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// Scroll columns left.
    Left,
    /// Scroll columns right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// First row.
    First,
    /// Last row.
    Last,
    /// The Overview.
    Overview,
    /// The Chains screen.
    Chains,
    /// The Locks screen.
    Locks,
    /// The Tasks screen.
    Tasks,
    /// The Leases screen.
    Leases,
    /// The Queue screen.
    Queue,
    /// The Backends screen.
    Backends,
    /// The Events screen.
    Events,
    /// Next pane.
    NextPane,
    /// Pane before.
    PreviousPane,
    /// This pane alone.
    Zoom,
    /// Open the selected row.
    Open,
    /// One step back.
    Back,
    /// Filter the rows.
    Filter,
    /// Sort the rows.
    Sort,
    /// Mark a row.
    Mark,
    /// Mark all rows that pass the filter now.
    MarkAll,
    /// Stay with a row across screens.
    Follow,
    /// Stop and go on.
    Pause,
    /// Poll more often.
    Faster,
    /// Poll less often.
    Slower,
    /// All findings.
    Findings,
    /// All lock types, or advisory locks alone.
    AllLocks,
    /// Wrap the text of the detail view.
    Wrap,
    /// Copy.
    Copy,
    /// Mouse on and off.
    Mouse,
    /// Poll now and draw everything anew.
    Refresh,
    /// Suspend.
    Suspend,
    /// Help.
    Help,
    /// Quit.
    Quit,
    /// Cancel the query of a session.
    Cancel,
    /// End a session.
    Terminate,
    /// Recover a task; put an item of the work queue back.
    Recover,
    /// Unlock a lease.
    Unlock,
    /// Enable or disable a task.
    Enable,
    /// Make a task due.
    MakeDue,
    /// Set an item of the work queue aside.
    SetAside,
}

impl Action {
    /// Those that act on the server: each asks before it does anything.
    pub const ACTING: [Self; 7] = [
        Self::Cancel,
        Self::Terminate,
        Self::Recover,
        Self::Unlock,
        Self::Enable,
        Self::MakeDue,
        Self::SetAside,
    ];

    /// Whether it acts on the server.
    #[must_use]
    pub fn acts(self) -> bool {
        Self::ACTING.contains(&self)
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// What it does.
    pub action: Action,
    /// Name in the config.
    pub name: &'static str,
    /// Default keys, as [`Key::parse`] reads them.
    pub keys: &'static [&'static str],
    /// One word for the footer.
    pub short: &'static str,
    /// A line for the help.
    pub help: &'static str,
    /// Heading in the help.
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

/// Heading of the keys that act.
const ACT: &str = "Act: each asks first";

/// The table.
pub const BINDINGS: &[Binding] = &[
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
    row(Action::Overview, "overview", &["1"], "overview", "Overview: what is wrong now", "Screens"),
    row(Action::Chains, "chains", &["2"], "chains", "Chains: who blocks whom, ranked", "Screens"),
    row(Action::Locks, "locks", &["3"], "locks", "Locks: held and awaited", "Screens"),
    row(
        Action::Tasks,
        "tasks",
        &["4"],
        "tasks",
        "Tasks: schedules and what runs (where there are task tables)",
        "Screens",
    ),
    row(
        Action::Leases,
        "leases",
        &["5"],
        "leases",
        "Leases: who has what and until when (if there are any)",
        "Screens",
    ),
    row(
        Action::Queue,
        "queue",
        &["6"],
        "queue",
        "Queue: items and workers; rate limits; id generators",
        "Screens",
    ),
    row(Action::Backends, "backends", &["7"], "backends", "Backends: all sessions and processes", "Screens"),
    row(Action::Events, "events", &["8"], "events", "Events: what changed, the newest first", "Screens"),
    row(Action::NextPane, "next_pane", &["tab"], "pane", "next pane", "Screens"),
    row(Action::PreviousPane, "previous_pane", &["shift-tab"], "pane", "pane before", "Screens"),
    row(Action::Zoom, "zoom", &["z"], "zoom", "this pane alone, and back", "Screens"),
    row(
        Action::Findings,
        "findings",
        &["!"],
        "findings",
        "everything that is wrong; Enter jumps there",
        "Screens",
    ),
    row(Action::Help, "help", &["?", "f1"], "help", "this help", "Screens"),
    row(Action::Filter, "filter", &["/"], "filter", "filter: text, column:value, !not, wait>30", "Rows"),
    row(Action::Sort, "sort", &["s"], "sort", "choose the column to sort by; again reverses", "Rows"),
    row(Action::Mark, "mark", &["space"], "mark", "mark the row and go to the next", "Rows"),
    row(
        Action::MarkAll,
        "mark_all",
        &["*"],
        "mark all",
        "mark all rows that pass the filter now; again unmarks",
        "Rows",
    ),
    row(
        Action::Follow,
        "follow",
        &["f"],
        "follow",
        "stay with this backend, lock or task on every screen",
        "Rows",
    ),
    row(
        Action::AllLocks,
        "all_locks",
        &["a"],
        "all locks",
        "all lock types, or advisory locks alone",
        "Rows",
    ),
    row(Action::Copy, "copy", &["y"], "copy", "copy the marked process ids, or the open row's text", "Rows"),
    row(Action::Wrap, "wrap", &["w"], "wrap", "wrap long lines in the detail view", "Rows"),
    row(Action::Cancel, "cancel", &["C"], "cancel", "cancel the query of a session", ACT),
    row(
        Action::Terminate,
        "terminate",
        &["K"],
        "terminate",
        "end a session; of a chain: its root, or all behind it",
        ACT,
    ),
    row(
        Action::Recover,
        "recover",
        &["R"],
        "recover",
        "recover tasks whose worker is gone; put a queue item back",
        ACT,
    ),
    row(Action::Unlock, "unlock", &["U"], "unlock", "end somebody else's lease", ACT),
    row(Action::Enable, "enable", &["E"], "enable/disable", "enable or disable a task", ACT),
    row(Action::MakeDue, "make_due", &["T"], "make due", "make a task due now", ACT),
    row(
        Action::SetAside,
        "set_aside",
        &["X"],
        "set aside",
        "set a queue item aside: nobody takes it any more",
        ACT,
    ),
    row(Action::Pause, "pause", &["p"], "pause", "hold the screen still; the polling goes on", "Time"),
    row(Action::Faster, "faster", &["+", "="], "faster", "refresh more often", "Time"),
    row(Action::Slower, "slower", &["-"], "slower", "refresh less often", "Time"),
    row(Action::Refresh, "refresh", &["r", "ctrl-l"], "refresh", "refresh now and draw anew", "Time"),
    row(
        Action::Mouse,
        "mouse",
        &["m"],
        "mouse",
        "mouse on or off (off leaves selecting to the terminal)",
        "Program",
    ),
    row(Action::Suspend, "suspend", &["ctrl-z"], "suspend", "suspend", "Program"),
    row(Action::Quit, "quit", &["q", "ctrl-c"], "quit", "quit", "Program"),
];

/// A key map that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    /// No action has this name.
    #[error("unknown action \"{0}\"")]
    UnknownAction(String),
    /// A key cannot be understood.
    #[error(transparent)]
    Key(#[from] crate::keys::KeyError),
    /// Two actions want one key.
    #[error("the key {key} is bound to both {first} and {second}")]
    Twice {
        /// The key.
        key: String,
        /// One action.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

/// Which key does what.
#[derive(Debug, Clone)]
pub struct KeyMap {
    by_key: BTreeMap<Key, Action>,
    keys: BTreeMap<Action, Vec<Key>>,
}

impl Default for KeyMap {
    fn default() -> Self {
        Self::with(&[]).unwrap_or(Self { by_key: BTreeMap::new(), keys: BTreeMap::new() })
    }
}

impl KeyMap {
    /// The table with the config's changes: an action's name and its keys. A key that a change takes from another
    /// action's defaults is no longer that action's.
    ///
    /// # Errors
    /// When a name or a key is unknown, or two changes want one key.
    pub fn with(changes: &[(String, Vec<String>)]) -> Result<Self, KeyMapError> {
        let mut chosen: BTreeMap<Action, Vec<Key>> = BTreeMap::new();
        let mut taken: BTreeMap<Key, &'static Binding> = BTreeMap::new();
        for (name, keys) in changes {
            let binding = BINDINGS
                .iter()
                .find(|binding| binding.name == name)
                .ok_or_else(|| KeyMapError::UnknownAction(name.clone()))?;
            let keys = keys.iter().map(|key| Key::parse(key)).collect::<Result<Vec<_>, _>>()?;
            for key in &keys {
                if let Some(other) = taken.insert(*key, binding)
                    && other.action != binding.action
                {
                    let (first, second) = (other.name, binding.name);
                    return Err(KeyMapError::Twice { key: key.to_string(), first, second });
                }
            }
            chosen.insert(binding.action, keys);
        }
        let mut map = Self { by_key: BTreeMap::new(), keys: BTreeMap::new() };
        for binding in BINDINGS {
            let keys = match chosen.remove(&binding.action) {
                Some(keys) => keys,
                None => binding
                    .keys
                    .iter()
                    .map(|key| Key::parse(key))
                    .collect::<Result<Vec<_>, _>>()?
                    .into_iter()
                    .filter(|key| !taken.contains_key(key))
                    .collect(),
            };
            for key in &keys {
                map.by_key.insert(*key, binding.action);
            }
            map.keys.insert(binding.action, keys);
        }
        Ok(map)
    }

    /// Without the keys that act.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.by_key.retain(|_, action| !action.acts());
        self.keys.retain(|action, _| !action.acts());
        self
    }

    /// What a key does.
    #[must_use]
    pub fn action(&self, key: Key) -> Option<Action> {
        self.by_key.get(&key).copied()
    }

    /// The first key of an action, to print in a footer; none when it has no key.
    #[must_use]
    pub fn key(&self, action: Action) -> Option<Key> {
        self.keys.get(&action)?.first().copied()
    }

    /// All keys of an action.
    #[must_use]
    pub fn keys(&self, action: Action) -> &[Key] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }
}

/// The row of the table for an action.
#[must_use]
pub fn binding(action: Action) -> Option<&'static Binding> {
    BINDINGS.iter().find(|binding| binding.action == action)
}

/// Whether a key types into a prompt rather than doing something.
#[must_use]
pub fn is_text(key: Key) -> bool {
    matches!(key.code, Code::Char(_)) && !key.ctrl && !key.alt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_default_key_is_bound_twice_and_every_action_has_one() {
        let mut seen = BTreeMap::new();
        for binding in BINDINGS {
            assert!(!binding.keys.is_empty(), "{}", binding.name);
            for key in binding.keys {
                let key = Key::parse(key).unwrap();
                assert_eq!(seen.insert(key, binding.name), None, "{key} for {}", binding.name);
            }
        }
    }

    #[test]
    fn a_change_takes_the_key_from_another_action() {
        let map =
            KeyMap::with(&[("quit".into(), vec!["x".into()]), ("zoom".into(), vec!["q".into()])]).unwrap();
        assert_eq!(map.action(Key::char('x')), Some(Action::Quit));
        assert_eq!(map.action(Key::char('q')), Some(Action::Zoom));
        assert_eq!(map.action(Key::char('z')), None);
        assert_eq!(map.action(Key::ctrl('c')), None, "all keys of an action are replaced");
    }

    #[test]
    fn read_only_leaves_no_key_that_acts() {
        let map = KeyMap::with(&[("terminate".into(), vec!["x".into()])]).unwrap();
        assert_eq!(map.action(Key::char('x')), Some(Action::Terminate));
        let map = map.read_only();
        for key in ["x", "C", "K", "R", "U", "E", "T", "X"] {
            assert_eq!(map.action(Key::parse(key).unwrap()), None, "{key}");
        }
        assert!(Action::ACTING.iter().all(|action| map.key(*action).is_none()));
        assert_eq!(map.action(Key::char('q')), Some(Action::Quit));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |changes: &[(&str, &str)]| {
            let changes: Vec<_> =
                changes.iter().map(|(name, key)| ((*name).to_owned(), vec![(*key).to_owned()])).collect();
            KeyMap::with(&changes).unwrap_err().to_string()
        };
        assert_eq!(error(&[("fly", "x")]), "unknown action \"fly\"");
        assert!(error(&[("quit", "ctrl-")]).contains("unknown key \"ctrl-\""));
        assert_eq!(error(&[("quit", "x"), ("zoom", "x")]), "the key x is bound to both quit and zoom");
    }
}
