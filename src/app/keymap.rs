mod bindings;

use std::collections::BTreeMap;

use super::screens::Screen;
use crate::keys::{Code, Key};
use crate::model::plan::CommandId;
use crate::model::timeline::Step;

pub use bindings::{BINDINGS, Binding, binding};

/// The names are those of the config's `[keys]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    First,
    Last,
    Go(Screen),
    NextPane,
    PreviousPane,
    Zoom,
    Open,
    /// Closes the topmost page, removes a filter, or returns from a jump.
    Back,
    Filter,
    NextMatch,
    PreviousMatch,
    Sort,
    Mark,
    MarkAll,
    Follow,
    Related,
    LookBack,
    LookOn,
    MinuteBack,
    MinuteOn,
    TroubleBefore,
    NextTrouble,
    GoToTime,
    Save,
    Pause,
    Faster,
    Slower,
    Findings,
    AllLocks,
    BlameBy,
    BlameSpan,
    Wrap,
    Copy,
    Mouse,
    Refresh,
    Suspend,
    Help,
    Quit,
    /// An action on rows, after a confirmation.
    Command(CommandId),
}

impl Action {
    /// `None` for an action that does not move in time.
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

    pub fn acts(self) -> bool {
        matches!(self, Self::Command(command) if !command.definition().is_local)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    #[error("unknown action \"{0}\"")]
    UnknownAction(String),
    #[error(transparent)]
    Key(#[from] crate::keys::KeyError),
    #[error("the key {key} is bound to both {first} and {second}")]
    Twice { key: String, first: &'static str, second: &'static str },
}

#[derive(Debug, Clone)]
pub struct KeyMap {
    by_key: BTreeMap<Key, Action>,
    /// Keys of actions that are not bound in this map.
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
    /// The table with the config's changes: the name of an action and its keys. A key that a change takes from the defaults
    /// of another action no longer belongs to that action.
    ///
    /// # Errors
    /// If a name or a key is unknown, or two changes use the same key.
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

    /// The actions that lost a default key to a change, each with the key and the action it has now.
    pub fn taken(&self) -> impl Iterator<Item = (&'static Binding, Key, Action)> {
        BINDINGS.iter().flat_map(|binding| {
            let keys = binding.keys.iter().filter_map(|key| Key::parse(key).ok());
            let taken = keys.filter_map(|key| Some((binding, key, self.action(key)?)));
            taken.filter(|(binding, _, now)| binding.action != *now).collect::<Vec<_>>()
        })
    }

    pub fn read_only(self) -> Self {
        self.without(Action::acts)
    }

    /// Without the keys that act on the live state, which a recording does not have.
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

    /// The action that a key of the table would have if it were bound in this map.
    pub fn unbound(&self, key: Key) -> Option<Action> {
        self.unbound.get(&key).copied()
    }

    pub fn action(&self, key: Key) -> Option<Action> {
        self.by_key.get(&key).copied()
    }

    /// The first key of an action, for the footer.
    pub fn key(&self, action: Action) -> Option<Key> {
        self.keys.get(&action)?.first().copied()
    }

    pub fn keys(&self, action: Action) -> &[Key] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }
}

/// Whether a key types a character into a prompt.
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
