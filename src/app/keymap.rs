use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::line::{Line, Tone};
use super::screens::{self, Screen};
use crate::keys::{Code, Key};
use crate::model::past::TimeStep;
use crate::model::plan::{Command, CommandId};

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

/// Declares the actions without a value: the name in the config's `[keys]`, the default keys, the words for the footer, and
/// the help, in its order.
macro_rules! actions {
    ($($list:ident { $($group:literal {
        $($(#[$doc:meta])* $action:ident $name:literal $keys:tt $short:literal $help:literal;)*
    })* })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $($($($(#[$doc])* $action,)*)*)*
            Go(Screen),
            /// An action on rows, after a confirmation.
            Command(CommandId),
        }

        $(const $list: &[Binding] = &[$($(Binding {
            action: Action::$action, name: $name, keys: &$keys, short: $short, help: $help, group: $group,
        },)*)*];)*
    };
}

actions! {
    MOVE {
        "Move" {
            Up "up" ["up", "k"] "up" "row above";
            Down "down" ["down", "j"] "down" "row below";
            Left "left" ["left", "h"] "left" "scroll columns left";
            Right "right" ["right", "l"] "right" "scroll columns right";
            PageUp "page_up" ["pgup", "ctrl-b"] "page up" "page up";
            PageDown "page_down" ["pgdn", "ctrl-f"] "page down" "page down";
            First "first" ["home", "g"] "first" "first row";
            Last "last" ["end", "G"] "last" "last row";
            Open "open" ["enter"] "open" "open the selected row";
            /// Closes the topmost page, removes a filter, or returns from a jump.
            Back "back" ["esc", "backspace"] "back" "one step back; clears a filter, then the marks";
        }
    }
    ROWS {
        "Screens" {
            NextPane "next_pane" ["tab"] "pane" "next pane";
            PreviousPane "previous_pane" ["shift-tab"] "pane" "previous pane";
            Zoom "zoom" ["z"] "zoom" "show only this pane, and back";
            Findings "findings" ["!"] "findings" "all findings; Enter jumps to the row";
            Help "help" ["?", "f1"] "help" "this help";
        }
        "Rows" {
            Filter "filter" ["/"] "filter"
                "filter: text, who:web, db=app, web|batch, !idle, wait>30, \"quoted text\"";
            NextMatch "next_match" ["n"] "next match"
                "next row that matches the filter; without a filter, a note for Events and the saved recording";
            PreviousMatch "previous_match" ["N"] "previous match" "previous row that matches the filter";
            Sort "sort" ["s"] "sort" "choose the column to sort by; again to reverse";
            Mark "mark" ["space"] "mark" "mark the row and go to the next";
            MarkAll "mark_all" ["*"] "mark all" "mark all rows that match the filter; again to unmark";
            Follow "follow" ["f"] "follow" "follow this session, lock or task on every screen";
            Related "related" ["x"] "go to"
                "from a row to its root, session, lock, task, item or lease; Esc returns";
            AllLocks "all_locks" ["a"] "all types"
                "Locks: below, held locks of all types, or only advisory locks";
            BlameBy "blame_by" ["b"] "by"
                "Blame by root, application, role, database, statement, lock or query tag";
            BlameSpan "blame_span" ["v"] "span" "Blame of the last 5m, 15m, 1h, or everything";
            Copy "copy" ["y"] "copy"
                "copy the marked process ids, or the text of the open row; for a prepared transaction, the statement that ends it";
            Wrap "wrap" ["w"] "wrap" "wrap long lines in the detail view";
        }
    }
    TIME_AND_PROGRAM {
        "Time" {
            LookBack "look_back" ["["] "step back" "previous snapshot; Esc returns to live";
            LookOn "look_on" ["]"] "step on" "next snapshot";
            MinuteBack "minute_back" ["{"] "minute back" "a minute back";
            MinuteOn "minute_on" ["}"] "minute on" "a minute forward";
            TroubleBefore "trouble_before" ["("] "last incident"
                "back to the previous incident: a session began to block others, a deadlock, an orphan, a lost connection or an action";
            NextTrouble "next_trouble" [")"] "next incident" "forward to the next incident";
            GoToTime "go_to_time" ["t"] "to a time"
                "to a time: 14:02, 14:02:31, -90s, -5m, worst (most waiting sessions); empty: live";
            Save "save" ["o"] "save" "write the history to a file, for locktop replay and locktop report";
            Pause "pause" ["p"] "pause" "freeze the screen; polling continues";
            Faster "faster" ["+", "="] "faster" "refresh more often";
            Slower "slower" ["-"] "slower" "refresh less often";
            Refresh "refresh" ["r", "ctrl-l"] "refresh" "refresh now and redraw";
        }
        "Program" {
            Mouse "mouse" ["m"] "mouse"
                "mouse on: click rows, headings, findings and shortcuts; mouse off: the terminal selects text";
            Suspend "suspend" ["ctrl-z"] "suspend" "suspend";
            Quit "quit" ["q", "ctrl-c", "f10"] "quit" "quit";
        }
    }
}

impl Action {
    /// `None` for an action that does not move in time.
    pub fn step(self) -> Option<TimeStep> {
        Some(match self {
            Self::LookBack => TimeStep::Snapshots(-1),
            Self::LookOn => TimeStep::Snapshots(1),
            Self::MinuteBack => TimeStep::Seconds(-60),
            Self::MinuteOn => TimeStep::Seconds(60),
            Self::TroubleBefore => TimeStep::IncidentBefore,
            Self::NextTrouble => TimeStep::NextIncident,
            _ => return None,
        })
    }

    pub fn acts(self) -> bool {
        matches!(self, Self::Command(command) if !command.definition().is_local)
    }
}

const ACT: &str = "Actions: each asks first";

/// The keys of the screens come from [`crate::app::screens`], those of actions from [`crate::model::plan::CommandId`].
pub static BINDINGS: LazyLock<Vec<Binding>> = LazyLock::new(|| {
    let listed = |bindings: &'static [Binding]| bindings.iter().copied();
    let screens = Screen::ALL.into_iter().map(|screen| {
        let screens::ScreenDefinition { key, name, help, .. } = screen.definition();
        let (action, keys) = (Action::Go(screen), std::slice::from_ref(key));
        Binding { action, name, keys, short: name, help, group: "Screens" }
    });
    let commands = CommandId::ALL.into_iter().map(|command| {
        let Command { name, keys, short, help, .. } = *command.definition();
        Binding { action: Action::Command(command), name, keys, short, help, group: ACT }
    });
    listed(MOVE).chain(screens).chain(listed(ROWS)).chain(commands).chain(listed(TIME_AND_PROGRAM)).collect()
});

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

/// Two changes use the same key.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the key {key} is bound to both {} and {}", .first.name, .second.name)]
pub struct BoundTwice {
    pub key: Key,
    pub first: &'static Binding,
    pub second: &'static Binding,
}

#[derive(Debug, Clone)]
pub struct KeyMap {
    keys: BTreeMap<Action, Vec<Key>>,
    /// Keys of actions that are not bound in this map.
    unbound: BTreeMap<Action, Vec<Key>>,
}

impl Default for KeyMap {
    fn default() -> Self {
        Self::of(BTreeMap::new(), &BTreeMap::new())
    }
}

impl KeyMap {
    /// The table with the config's changes. A key that a change takes from the defaults of another action no longer belongs
    /// to that action.
    pub fn with(changes: impl Iterator<Item = (&'static Binding, Vec<Key>)>) -> Result<Self, BoundTwice> {
        let mut chosen: BTreeMap<Action, Vec<Key>> = BTreeMap::new();
        let mut taken: BTreeMap<Key, &'static Binding> = BTreeMap::new();
        for (second, keys) in changes {
            for key in keys.iter().copied() {
                if let Some(first) = taken.insert(key, second)
                    && first.action != second.action
                {
                    return Err(BoundTwice { key, first, second });
                }
            }
            chosen.insert(second.action, keys);
        }
        Ok(Self::of(chosen, &taken))
    }

    fn of(mut chosen: BTreeMap<Action, Vec<Key>>, taken: &BTreeMap<Key, &'static Binding>) -> Self {
        let keys = BINDINGS.iter().map(|binding| {
            let keys = chosen.remove(&binding.action).unwrap_or_else(|| {
                let keys = binding.keys.iter().filter_map(|key| Key::parse(key).ok());
                keys.filter(|key| !taken.contains_key(key)).collect()
            });
            (binding.action, keys)
        });
        Self { keys: keys.collect(), unbound: BTreeMap::new() }
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
        let (out, kept) = self.keys.into_iter().partition(|(action, _)| is_out(*action));
        self.unbound.extend::<BTreeMap<_, _>>(out);
        Self { keys: kept, ..self }
    }

    /// The action that a key of the table would have if it were bound in this map.
    pub fn unbound(&self, key: Key) -> Option<Action> {
        action_of(&self.unbound, key)
    }

    pub fn action(&self, key: Key) -> Option<Action> {
        action_of(&self.keys, key)
    }

    /// The first key of an action, for the footer.
    pub fn key(&self, action: Action) -> Option<Key> {
        self.keys.get(&action)?.first().copied()
    }

    /// `K terminate`: the key of an action and what it does; `None` if it is not bound.
    pub fn hint(&self, action: Action, does: &str) -> Option<Line> {
        let key = Line::new().with(self.key(action)?.to_string(), Tone::Key);
        Some(key.with(format!(" {does}"), Tone::Plain))
    }

    pub fn keys(&self, action: Action) -> &[Key] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }
}

fn action_of(keys: &BTreeMap<Action, Vec<Key>>, key: Key) -> Option<Action> {
    keys.iter().find(|(_, keys)| keys.contains(&key)).map(|(action, _)| *action)
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

    fn with(changes: &[(Action, char)]) -> Result<KeyMap, BoundTwice> {
        let change = |(action, key): &(Action, char)| (binding(*action).unwrap(), vec![Key::char(*key)]);
        KeyMap::with(changes.iter().map(change))
    }

    #[test]
    fn a_change_takes_the_key_from_another_action() {
        let map = with(&[(Action::Quit, 'x'), (Action::Zoom, 'q')]).unwrap();
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
        let map = with(&[(Action::Command(CommandId::Terminate), 'x')]).unwrap();
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
    fn a_key_of_two_changes_is_a_mistake() {
        let error = with(&[(Action::Quit, 'x'), (Action::Zoom, 'x')]).unwrap_err();
        assert_eq!(error.to_string(), "the key x is bound to both quit and zoom");
    }
}
