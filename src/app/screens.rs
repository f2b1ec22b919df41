//! The screens: the panes on each, its key and its texts. The keys, the command line, the help and the footer read this
//! list.

use super::panes::Pane;
use crate::model::view::View;

/// The panes whose data exist; a screen without one is not selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AvailablePanes {
    panes: u32,
    /// A lease was seen at some time: until then the Overview has no rows for leases.
    pub lease_seen: bool,
}

impl AvailablePanes {
    pub fn of(view: &View) -> Self {
        let Some(snapshot) = view.snapshot.as_deref() else { return Self::default() };
        let is_there = |pane: &Pane| pane.definition().is_there.is_some_and(|is| is(view, snapshot));
        let panes = Pane::ALL.into_iter().filter(is_there).fold(0, |panes, pane| panes | (1 << pane as u32));
        Self { panes, lease_seen: !view.leases.rows.is_empty() }
    }

    pub fn has(self, pane: Pane) -> bool {
        pane.definition().is_there.is_none() || self.panes & (1 << pane as u32) != 0
    }
}

pub struct ScreenDefinition {
    pub key: &'static str,
    /// Its name on the command line, and the name of its key in the config.
    pub name: &'static str,
    pub title: &'static str,
    /// What it shows, for the help of the command line.
    pub about: &'static str,
    /// What its key leads to, for the help of the keys.
    pub help: &'static str,
    /// Its panes, in the order of Tab. If none of them exists, the first one reports it.
    pub panes: &'static [PanePlace],
    /// Shown when its key is pressed and there is nothing to show.
    pub absent: &'static str,
}

/// A pane on a screen, its share of the height, and the condition for showing it.
pub struct PanePlace {
    pane: Pane,
    /// Its share of the height, relative to the other panes that are shown.
    share: u16,
    /// A condition in addition to the existence of its data.
    only_where: fn(AvailablePanes) -> bool,
}

const fn pane(pane: Pane, share: u16) -> PanePlace {
    PanePlace { pane, share, only_where: |_| true }
}

/// Generates from one list the names of the screens and the value of each.
macro_rules! screens {
    ($($(#[$doc:meta])* $name:ident = $definition:expr,)*) => {
        /// A screen by its name: what the number keys choose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub enum Screen {
            $($(#[$doc])* $name,)*
        }

        impl Screen {
            /// Every screen, in the order of their keys.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            pub fn definition(self) -> &'static ScreenDefinition {
                match self {
                    $(Self::$name => {
                        static DEFINITION: ScreenDefinition = $definition;
                        &DEFINITION
                    })*
                }
            }
        }
    };
}

screens! {
    #[default]
    Overview = ScreenDefinition {
        key: "1",
        name: "overview",
        title: "Overview",
        about: "Findings, chains, advisory locks, tasks and leases together",
        help: "Overview: findings, and the main panes in short",
        panes: &[
            pane(Pane::Findings, 0),
            pane(Pane::Chains, 0),
            pane(Pane::Advisory, 9),
            pane(Pane::Tasks, 10),
            PanePlace { pane: Pane::Leases, share: 9, only_where: |has| has.lease_seen },
        ],
        absent: "",
    },
    Chains = ScreenDefinition {
        key: "2",
        name: "chains",
        title: "Chains",
        about: "Root blockers and waiters",
        help: "Chains: root blockers and their waiters, ranked",
        panes: &[pane(Pane::Chains, 1)],
        absent: "",
    },
    Locks = ScreenDefinition {
        key: "3",
        name: "locks",
        title: "Locks",
        about: "Locks that sessions wait for, and held locks",
        help: "Locks: those that sessions wait for, and those held",
        panes: &[pane(Pane::Locks, 1), pane(Pane::Held, 1), pane(Pane::Waits, 1)],
        absent: "",
    },
    Tasks = ScreenDefinition {
        key: "4",
        name: "tasks",
        title: "Tasks",
        about: "Scheduled tasks, and the jobs of other systems",
        help: "Tasks: schedules and what runs; jobs of other systems",
        panes: &[pane(Pane::Tasks, 3), pane(Pane::Jobs, 2), pane(Pane::Schedules, 1)],
        absent: "no task tables here; [tables] in the config can name some",
    },
    Leases = ScreenDefinition {
        key: "5",
        name: "leases",
        title: "Leases",
        about: "Leases in tables and in Redis",
        help: "Leases: their owners, and when they expire",
        panes: &[pane(Pane::Leases, 3), pane(Pane::OtherLeases, 1)],
        absent: "no leases here: no table distlock ([tables] in the config can name one), and no --redis",
    },
    Queue = ScreenDefinition {
        key: "6",
        name: "queue",
        title: "Queue",
        about: "Work queues and their workers, rate limits and id generators",
        help: "Queue: items, queues, workers; rate limits; id generators",
        panes: &[
            pane(Pane::Queue, 4),
            pane(Pane::JobQueues, 2),
            pane(Pane::Workers, 2),
            pane(Pane::Limits, 1),
            pane(Pane::Generators, 1),
        ],
        absent: "no table task_queue, rate_limit or id_generator here; [tables] in the config can name one",
    },
    Backends = ScreenDefinition {
        key: "7",
        name: "backends",
        title: "Backends",
        about: "Sessions and server processes",
        help: "Backends: all sessions and processes",
        panes: &[pane(Pane::Backends, 1)],
        absent: "",
    },
    Events = ScreenDefinition {
        key: "8",
        name: "events",
        title: "Events",
        about: "Changes between snapshots, and the actions",
        help: "Events: changes, the newest first",
        panes: &[pane(Pane::Events, 1)],
        absent: "",
    },
    Blame = ScreenDefinition {
        key: "9",
        name: "blame",
        title: "Blame",
        about: "Root blockers, and the waiting time they caused",
        help: "Blame: root blockers, and the waiting time they caused",
        panes: &[pane(Pane::Blame, 1), pane(Pane::Episodes, 1)],
        absent: "",
    },
}

impl Screen {
    pub fn title(self) -> &'static str {
        self.definition().title
    }

    /// Whether it can be selected: one of its panes has something to show.
    pub fn is_there(self, has: AvailablePanes) -> bool {
        self.there(has).next().is_some()
    }

    pub fn panes(self, has: AvailablePanes) -> Vec<Pane> {
        let there: Vec<Pane> = self.there(has).collect();
        if there.is_empty() { self.all().take(1).collect() } else { there }
    }

    pub fn all(self) -> impl Iterator<Item = Pane> {
        self.definition().panes.iter().map(|place| place.pane)
    }

    pub fn share(self, pane: Pane) -> u16 {
        self.definition().panes.iter().find(|place| place.pane == pane).map_or(1, |place| place.share)
    }

    fn there(self, has: AvailablePanes) -> impl Iterator<Item = Pane> {
        let is_there = move |place: &&PanePlace| has.has(place.pane) && (place.only_where)(has);
        self.definition().panes.iter().filter(is_there).map(|place| place.pane)
    }

    pub fn with(pane: Pane) -> impl Iterator<Item = Self> {
        let others = Self::ALL.into_iter().filter(|screen| *screen != Self::Overview);
        others.filter(move |screen| screen.all().any(|other| other == pane))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_screen_has_a_key_and_a_name_of_its_own_and_every_pane_a_screen() {
        let of = |get: fn(&ScreenDefinition) -> &'static str| -> BTreeSet<_> {
            Screen::ALL.into_iter().map(|screen| get(screen.definition())).collect()
        };
        assert_eq!(of(|screen| screen.key).len(), Screen::ALL.len());
        assert_eq!(of(|screen| screen.name).len(), Screen::ALL.len());
        for pane in Pane::ALL {
            assert!(
                Screen::ALL.into_iter().any(|screen| screen.all().any(|other| other == pane)),
                "{pane:?}"
            );
        }
    }

    #[test]
    fn a_screen_that_can_be_absent_has_a_reason() {
        for screen in Screen::ALL {
            assert_eq!(
                screen.is_there(AvailablePanes::default()),
                screen.definition().absent.is_empty(),
                "{screen:?}"
            );
            assert!(!screen.panes(AvailablePanes::default()).is_empty());
        }
    }
}
