//! One table of keys: it feeds what a key does, the footer and the help.

mod bindings;

use std::collections::BTreeMap;

use super::screens::Screen;
use crate::keys::{Code, Key};
use crate::model::plan::CommandId;
use crate::model::timeline::Step;

pub use bindings::{BINDINGS, Binding, binding};

/// What a key can mean. The names are those of the config's `[keys]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Selects the row above, or scrolls up.
    Up,
    /// Selects the row below, or scrolls down.
    Down,
    /// Scrolls a column to the left.
    Left,
    /// Scrolls a column to the right.
    Right,
    /// Moves up by a page of rows.
    PageUp,
    /// Moves down by a page of rows.
    PageDown,
    /// Selects the first row.
    First,
    /// Selects the last row.
    Last,
    /// Goes to a screen by its digit.
    Go(Screen),
    /// Gives the keys to the next pane of the screen.
    NextPane,
    /// Gives the keys to the pane before.
    PreviousPane,
    /// Shows this pane alone, or all of the screen again.
    Zoom,
    /// Opens the detail page of the selected row.
    Open,
    /// Closes what is on top, takes a filter away, or leads back from a jump.
    Back,
    /// Types a filter over the rows.
    Filter,
    /// The next row that the filter lets through.
    NextMatch,
    /// The row before that the filter lets through.
    PreviousMatch,
    /// Chooses the column to sort by.
    Sort,
    /// Marks the selected row, or unmarks it.
    Mark,
    /// Mark all rows that pass the filter now.
    MarkAll,
    /// Stay with a row across screens.
    Follow,
    /// To what belongs to a row.
    Related,
    /// Shows the look before.
    LookBack,
    /// Shows the look after, and after the last what is now.
    LookOn,
    /// Goes a minute back in time.
    MinuteBack,
    /// Goes a minute on in time.
    MinuteOn,
    /// The last look with trouble before.
    TroubleBefore,
    /// Goes to the next look with trouble.
    NextTrouble,
    /// Types a time to go to.
    GoToTime,
    /// Write the looks that are kept to a file.
    Save,
    /// Holds the screens still, or lets them go on.
    Pause,
    /// Polls at a shorter interval.
    Faster,
    /// Polls at a longer interval.
    Slower,
    /// Lists all findings over the screen.
    Findings,
    /// All lock types, or advisory locks alone.
    AllLocks,
    /// By what those are taken together who made others wait.
    BlameBy,
    /// How far back that is looked for.
    BlameSpan,
    /// Wrap the text of the detail view.
    Wrap,
    /// Copies the selected row, or what a page is about, to the clipboard.
    Copy,
    /// Switches mouse reporting on or off.
    Mouse,
    /// Poll now and draw everything anew.
    Refresh,
    /// Gives the terminal back until the program is continued.
    Suspend,
    /// Shows all keys and what the words mean.
    Help,
    /// Ends the program, and gives the terminal back.
    Quit,
    /// Does something to rows: a question comes first.
    Command(CommandId),
}

impl Action {
    /// Where it leads in time; none for what does not.
    pub fn step(self) -> Option<Step> {
        Some(match self {
            Self::LookBack => Step::Looks(-1),
            Self::LookOn => Step::Looks(1),
            Self::MinuteBack => Step::Seconds(-60),
            Self::MinuteOn => Step::Seconds(60),
            Self::TroubleBefore => Step::TroubleBefore,
            Self::NextTrouble => Step::NextTrouble,
            _ => return None,
        })
    }

    /// Whether it acts on the server.
    pub fn acts(self) -> bool {
        matches!(self, Self::Command(command) if !command.definition().is_local)
    }
}

/// A key map that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    /// No action of the config's `[keys]` has this name.
    #[error("unknown action \"{0}\"")]
    UnknownAction(String),
    /// A key of the config's `[keys]` cannot be understood.
    #[error(transparent)]
    Key(#[from] crate::keys::KeyError),
    /// Two actions of the config want the same key.
    #[error("the key {key} is bound to both {first} and {second}")]
    Twice {
        /// The key, as people write it.
        key: String,
        /// The action that had it first.
        first: &'static str,
        /// The action that wants it, too.
        second: &'static str,
    },
}

/// Which key does what, of the table and the config's `[keys]`.
#[derive(Debug, Clone)]
pub struct KeyMap {
    by_key: BTreeMap<Key, Action>,
    /// The keys that act, where they are not bound.
    unbound: BTreeMap<Key, Action>,
    keys: BTreeMap<Action, Vec<Key>>,
}

impl Default for KeyMap {
    fn default() -> Self {
        Self::with(&[]).unwrap_or(Self {
            by_key: BTreeMap::new(),
            unbound: BTreeMap::new(),
            keys: BTreeMap::new(),
        })
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
        let mut map = Self { by_key: BTreeMap::new(), unbound: BTreeMap::new(), keys: BTreeMap::new() };
        for binding in BINDINGS.iter() {
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

    /// The actions that a change took a default key from, each with that key and what it does now.
    pub fn taken(&self) -> impl Iterator<Item = (&'static Binding, Key, Action)> {
        BINDINGS.iter().flat_map(|binding| {
            let keys = binding.keys.iter().filter_map(|key| Key::parse(key).ok());
            let taken = keys.filter_map(|key| Some((binding, key, self.action(key)?)));
            taken.filter(|(binding, _, now)| binding.action != *now).collect::<Vec<_>>()
        })
    }

    /// The same map without the keys that act on the server.
    pub fn read_only(self) -> Self {
        self.without(Action::acts)
    }

    /// Without the keys that do something about what is now, which a recording has not.
    pub fn in_recording(self) -> Self {
        self.without(|action| matches!(action, Action::Command(_)))
    }

    fn without(mut self, is_out: impl Fn(Action) -> bool) -> Self {
        let out = self.by_key.iter().filter(|(_, action)| is_out(**action));
        self.unbound.extend(out.map(|(key, action)| (*key, *action)));
        self.by_key.retain(|_, action| !is_out(*action));
        self.keys.retain(|action, _| !is_out(*action));
        self
    }

    /// What a key of the table would do that this map has not bound.
    pub fn unbound(&self, key: Key) -> Option<Action> {
        self.unbound.get(&key).copied()
    }

    /// What a key does; none where it does nothing.
    pub fn action(&self, key: Key) -> Option<Action> {
        self.by_key.get(&key).copied()
    }

    /// The first key of an action, to print in a footer; none when it has no key.
    pub fn key(&self, action: Action) -> Option<Key> {
        self.keys.get(&action)?.first().copied()
    }

    /// All keys of an action, the one of the footer first.
    pub fn keys(&self, action: Action) -> &[Key] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }
}

/// Whether a key types into a prompt rather than doing something.
pub fn is_text(key: Key) -> bool {
    matches!(key.code, Code::Char(_)) && !key.ctrl && !key.alt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_default_key_is_bound_twice_and_every_action_has_one() {
        let mut seen = BTreeMap::new();
        for binding in BINDINGS.iter() {
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
        let taken: Vec<_> = map.taken().map(|(binding, key, now)| (binding.name, key, now)).collect();
        assert_eq!(
            taken,
            [("related", Key::char('x'), Action::Quit), ("quit", Key::char('q'), Action::Zoom)]
        );
    }

    #[test]
    fn read_only_leaves_no_key_that_acts() {
        let map = KeyMap::with(&[("terminate".into(), vec!["x".into()])]).unwrap();
        assert_eq!(map.action(Key::char('x')), Some(Action::Command(CommandId::Terminate)));
        let map = map.read_only();
        for key in ["x", "C", "K", "R", "U", "E", "T", "X"] {
            assert_eq!(map.action(Key::parse(key).unwrap()), None, "{key}");
        }
        let key = |command: &CommandId| map.key(Action::Command(*command));
        assert!(CommandId::ALL.iter().all(|command| key(command).is_none() != command.definition().is_local));
        assert_eq!(map.action(Key::char('q')), Some(Action::Quit));
        let map = map.in_recording();
        assert!(CommandId::ALL.iter().all(|command| map.key(Action::Command(*command)).is_none()));
        assert_eq!(map.unbound(Key::char('C')), Some(Action::Command(CommandId::Cancel)));
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
