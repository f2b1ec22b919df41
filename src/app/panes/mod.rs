//! The panes. Each file defines one value: the columns, the rows and their order, the title and the detail page.
//!
//! Only the list below names all of them; [`crate::app::screens`] assigns them to screens. `docs/dev/adding.md`
//! describes how to add a column or a pane.

pub mod backends;
mod blame;
pub mod cell;
pub mod chains;
mod column;
mod definition;
mod episodes;
pub mod events;
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
mod schedules;
pub mod tasks;
mod waits;

use super::context::Context;
pub use crate::model::row_id::{LockOwner, RowId};

pub use cell::{Cell, SortValue};
pub use column::{Column, Heading, PaneTable, Rows};
pub use definition::{Basis, Fact, PaneDefinition, ReadState, RowOptions, Total, stale};
pub use fit::fitted;
use forest::ChainRow;

/// Generates from one list the names of the panes and the value of each.
macro_rules! panes {
    ($($(#[$doc:meta])* $name:ident = $definition:path,)*) => {
        /// A pane by its name, in the order of the list below.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum Pane {
            $($(#[$doc])* $name,)*
        }

        impl Pane {
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            pub fn definition(self) -> &'static PaneDefinition {
                match self {
                    $(Self::$name => &$definition,)*
                }
            }
        }
    };
}

panes! {
    /// What is wrong, the worst first.
    #[default]
    Findings = findings::PANE,
    /// The blocking forest: who waits behind whom.
    Chains = chains::PANE,
    /// Held advisory locks, those somebody waits for first.
    Advisory = held::ADVISORY,
    /// Locks that sessions wait for, each once.
    Locks = locks::PANE,
    /// Locks that are held and not waited for.
    Held = held::PANE,
    /// Locks that were waited for, the most expensive first.
    Waits = waits::PANE,
    /// Tasks of `scheduled_tasks`, and what runs of them.
    Tasks = tasks::PANE,
    /// Jobs of other systems, the worst first.
    Jobs = jobs::PANE,
    /// What other systems start by the clock.
    Schedules = schedules::PANE,
    /// Leases in tables and in Redis.
    Leases = leases::PANE,
    /// Leases of other systems: leaders, semaphores, locks in a row.
    OtherLeases = other_leases::PANE,
    /// Items of the work queue that somebody should see.
    Queue = queue::PANE,
    /// Queues of other systems, and how deep they are.
    JobQueues = job_queues::PANE,
    /// Workers of other systems, and whether they live.
    Workers = job_workers::PANE,
    /// Rate limits, the fullest first.
    Limits = limits::PANE,
    /// Id generators, those ahead of the clock first.
    Generators = generators::PANE,
    /// Sessions and processes of the server.
    Backends = backends::PANE,
    /// What changed, the newest first.
    Events = events::PANE,
    /// Who made others wait, the most expensive first.
    Blame = blame::PANE,
    /// From the first who waited to the last.
    Episodes = episodes::PANE,
}

#[derive(Debug)]
pub(super) struct PaneMap<T>([T; Pane::ALL.len()]);

#[expect(clippy::indexing_slicing, reason = "there is one for each pane")]
impl<T> PaneMap<T> {
    pub(super) fn new(make: impl Fn(Pane) -> T) -> Self {
        Self(Pane::ALL.map(make))
    }

    pub(super) fn get(&self, pane: Pane) -> &T {
        &self.0[pane as usize]
    }

    pub(super) fn get_mut(&mut self, pane: Pane) -> &mut T {
        &mut self.0[pane as usize]
    }
}

impl Pane {
    pub fn title(self) -> &'static str {
        self.definition().title
    }

    /// The facts in its title, and for rows that could not be read again their age and the reason.
    pub fn facts(self, context: &Context<'_>, total: Total) -> Vec<Fact> {
        let definition = self.definition();
        let mut facts = (definition.facts)(context, total);
        let read = (definition.read)(context);
        if let Some(search) = definition.search(context.snapshot)
            && let Some(error) = search.error.as_deref()
        {
            let (text, tone) = stale(context, search.taken_at, error);
            facts.push((format!("cannot search for tables, {text}"), tone));
        }
        facts.extend(read.error.map(|error| stale(context, read.at, error)));
        facts
    }

    pub fn table(self) -> &'static dyn PaneTable {
        self.definition().table
    }
}

/// The position of a row in the view; its pane knows in which list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    At(u32),
    /// Index of a table in the snapshot, and of the row in that table.
    In(u32, u32),
    /// A line of the forest, with its level.
    Chain(ChainRow),
    /// Position of an event among those that are kept, and the number of events in the line.
    Events(u32, u32),
}

/// There is one row for each lock, and a server may have tens of thousands.
const _: () = assert!(size_of::<Row>() == 16, "a row of a pane has 16 bytes");

impl Row {
    pub fn all(count: usize) -> Vec<Self> {
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(Self::At).collect()
    }

    /// One for each row of several tables, in order; `counts` has their lengths.
    pub fn all_of(counts: impl Iterator<Item = usize>) -> Vec<Self> {
        let of = |(table, count): (u32, usize)| {
            (0..u32::try_from(count).unwrap_or(u32::MAX)).map(move |at| Self::In(table, at))
        };
        (0u32..).zip(counts).flat_map(of).collect()
    }

    pub fn at(self) -> Option<usize> {
        match self {
            Self::At(at) => Some(at as usize),
            _ => None,
        }
    }

    /// The indexes of its table and of the row in it; `None` for a row of another kind.
    pub fn within(self) -> Option<(usize, usize)> {
        match self {
            Self::In(table, at) => Some((table as usize, at as usize)),
            _ => None,
        }
    }
}

impl RowId {
    /// The pane with the name and the detail page for it.
    pub fn home(self) -> Pane {
        match self {
            Self::Finding(..) => Pane::Findings,
            Self::Backend(_) => Pane::Backends,
            Self::Prepared(_) | Self::Group(..) | Self::Run(_) => Pane::Chains,
            Self::Lock(..) => Pane::Held,
            Self::Awaited(_) => Pane::Locks,
            Self::Waits(_) => Pane::Waits,
            Self::Task(..) => Pane::Tasks,
            Self::Lease(_) => Pane::Leases,
            Self::Job(_) => Pane::Jobs,
            Self::Schedule(_) => Pane::Schedules,
            Self::OtherLease(_) => Pane::OtherLeases,
            Self::JobQueue(_) => Pane::JobQueues,
            Self::Worker(_) => Pane::Workers,
            Self::Item(_) | Self::Queue => Pane::Queue,
            Self::Limit(_) => Pane::Limits,
            Self::Generator(_) => Pane::Generators,
            Self::Event(..) | Self::Routine(_) => Pane::Events,
            Self::Blamed(_) => Pane::Blame,
            Self::Episode(_) => Pane::Episodes,
        }
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
    fn every_pane_has_a_unique_title_and_a_text_for_no_rows() {
        let titles: BTreeSet<_> = Pane::ALL.into_iter().map(Pane::title).collect();
        assert_eq!(titles.len(), Pane::ALL.len());
        for pane in Pane::ALL {
            assert_ne!(pane.definition().empty, "nothing", "{pane:?}");
        }
    }
}
