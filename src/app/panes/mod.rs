//! The panes. Each file defines one value: the columns, the rows and their order, the title and the detail page.
//!
//! Only the list below names all of them; [`crate::app::screens`] assigns them to screens. `docs/dev/adding.md`
//! describes how to add a column or a pane.

mod advisory;
pub mod backends;
mod blame;
pub mod cell;
pub mod chains;
mod column;
mod definition;
mod episodes;
pub mod events;
mod facts;
pub mod findings;
mod fit;
mod forest;
pub(super) mod generators;
mod held;
mod job_queues;
mod job_workers;
pub(super) mod jobs;
pub mod leases;
pub(super) mod limits;
pub mod locks;
mod other_leases;
pub mod queue;
mod row;
mod schedules;
pub mod tasks;
mod waits;

use super::context::Context;

pub use cell::{Cell, Value};
pub use column::{Column, Columns, Heading, Rows, Table};
pub use definition::{Basis, Definition, Read, Total, Wanted};
use facts::unsearched;
pub use facts::{Fact, stale};
pub use fit::fitted;
pub use row::{Owner, Row, RowId};

/// Generates from one list the names of the panes, the value of each, and a map with one entry per pane.
macro_rules! panes {
    ($($(#[$doc:meta])* $name:ident = $module:ident,)*) => {
        /// A pane by its name, in the order of the list below.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum Pane {
            $($(#[$doc])* $name,)*
        }

        impl Pane {
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            pub fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$name => &$module::PANE,)*
                }
            }
        }

        #[derive(Debug)]
        pub(super) struct PaneMap<T> {
            $($module: T,)*
        }

        impl<T> PaneMap<T> {
            pub(super) fn new(make: impl Fn(Pane) -> T) -> Self {
                Self { $($module: make(Pane::$name),)* }
            }

            pub(super) fn get(&self, pane: Pane) -> &T {
                match pane {
                    $(Pane::$name => &self.$module,)*
                }
            }

            pub(super) fn get_mut(&mut self, pane: Pane) -> &mut T {
                match pane {
                    $(Pane::$name => &mut self.$module,)*
                }
            }
        }
    };
}

panes! {
    /// What is wrong, the worst first.
    #[default]
    Findings = findings,
    /// The blocking forest: who waits behind whom.
    Chains = chains,
    /// Held advisory locks, those somebody waits for first.
    Advisory = advisory,
    /// Locks that sessions wait for, each once.
    Locks = locks,
    /// Locks that are held and not waited for.
    Held = held,
    /// Locks that were waited for, the most expensive first.
    Waits = waits,
    /// Tasks of `scheduled_tasks`, and what runs of them.
    Tasks = tasks,
    /// Jobs of other systems, the worst first.
    Jobs = jobs,
    /// What other systems start by the clock.
    Schedules = schedules,
    /// Leases in tables and in Redis.
    Leases = leases,
    /// Leases of other systems: leaders, semaphores, locks in a row.
    OtherLeases = other_leases,
    /// Items of the work queue that somebody should see.
    Queue = queue,
    /// Queues of other systems, and how deep they are.
    JobQueues = job_queues,
    /// Workers of other systems, and whether they live.
    Workers = job_workers,
    /// Rate limits, the fullest first.
    Limits = limits,
    /// Id generators, those ahead of the clock first.
    Generators = generators,
    /// Sessions and processes of the server.
    Backends = backends,
    /// What changed, the newest first.
    Events = events,
    /// Who made others wait, the most expensive first.
    Blame = blame,
    /// From the first who waited to the last.
    Episodes = episodes,
}

impl Pane {
    pub fn title(self) -> &'static str {
        self.definition().title
    }

    /// The facts in its title, and for rows that could not be read again their age and the reason.
    pub fn facts(self, context: &Context<'_>, total: Total) -> Vec<Fact> {
        let mut facts = (self.definition().facts)(context, total);
        let read = (self.definition().read)(context);
        facts.extend(
            self.definition().search.and_then(|search| unsearched(context, search(context.snapshot))),
        );
        facts.extend(read.error.map(|error| stale(context, read.at, error)));
        facts
    }

    pub fn table(self) -> &'static dyn Table {
        self.definition().table
    }
}

/// Short names of states for narrow columns, and names that are not a state of one kind of row.
const OTHER_STATES: [&str; 4] = ["idle in xact", "idle aborted", "fastpath", "split"];

pub fn is_state(word: &str) -> bool {
    Pane::ALL.into_iter().any(|pane| (pane.definition().is_state)(word))
        || OTHER_STATES.into_iter().any(|state| state.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_is_described_and_has_a_name_of_its_own() {
        for pane in Pane::ALL {
            let headings = pane.table().headings();
            let names: BTreeSet<_> = headings.iter().map(|heading| heading.name).collect();
            assert_eq!(names.len(), headings.len(), "{pane:?}");
            for heading in headings {
                assert!(!heading.help.is_empty(), "{pane:?} {}", heading.title);
            }
        }
    }

    #[test]
    fn every_pane_has_a_title_of_its_own_and_says_when_it_is_empty() {
        let titles: BTreeSet<_> = Pane::ALL.into_iter().map(Pane::title).collect();
        assert_eq!(titles.len(), Pane::ALL.len());
        for pane in Pane::ALL {
            assert_ne!(pane.definition().empty, "nothing", "{pane:?}");
        }
    }
}
