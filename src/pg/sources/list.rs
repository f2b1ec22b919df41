use std::sync::Arc;

use tokio_postgres::Client;

use super::reader::{self, Answer, Reader, Source, Turn};
use super::search;
use super::tasks::{self, Pair};
use crate::model::Text;
use crate::model::id_generator::IdGenerator;
use crate::model::lease::Lease;
use crate::model::rate_limit::RateLimit;
use crate::model::refusals::Refusals;
use crate::model::snapshot::Snapshot;
use crate::model::systems::{CountedWaits, Systems};
use crate::model::table_rows::TaskWorker;
use crate::model::task::{Execution, Schedule, TaskSet};
use crate::model::work_queue::{Item, StateCount};
use crate::pg::scope::{Scope, SectionError};

/// Sources with their own field in [`Systems`], and the code for all of them; the pairs of task tables come first.
macro_rules! sources {
    ($($place:ident: $row:ty),* $(,)?) => {
        #[derive(Debug, Default)]
        pub(super) struct Readers {
            tasks: Vec<Pair>,
            $($place: Vec<Reader<$row>>,)*
        }

        #[derive(Debug, Default)]
        pub(in crate::pg) struct Answers {
            tasks: Vec<tasks::PairAnswer>,
            $(pub(super) $place: Vec<Answer>,)*
        }

        /// The usual table names, without duplicates.
        pub(in crate::pg) fn names() -> Vec<&'static str> {
            let mut names = vec![Schedule::TABLE, Execution::TABLE, $(<$row>::TABLE,)*];
            names.dedup();
            names
        }

        impl Readers {
            pub(super) async fn prepare(
                client: &Client,
                scope: Scope,
                found: &search::FoundTables,
            ) -> Result<Self, SectionError> {
                Ok(Self {
                    tasks: tasks::prepared(client, scope, found).await?,
                    $($place: found.readers(client, scope).await?,)*
                })
            }

            pub(super) fn is_empty(&self) -> bool {
                self.tasks.is_empty() $(&& self.$place.is_empty())*
            }

            pub(super) async fn read(&self, client: &Client, before: Option<&Snapshot>) -> Answers {
                let (old, locks) = (before.map(|before| &*before.systems), before.map(|before| &before.locks));
                let (tasks, $($place),*) = tokio::join!(
                    biased;
                    tasks::read(client, &self.tasks, before),
                    $(reader::read(client, &self.$place, old.map(|old| &*old.$place), locks)),*
                );
                Answers { tasks, $($place),* }
            }

            pub(super) fn sections(
                &mut self,
                found: Answers,
                turn: &mut Turn<'_>,
                before: Option<&Snapshot>,
            ) -> (Arc<Vec<TaskSet>>, Arc<Systems>) {
                let old = before.map(|before| &*before.systems);
                let sets = tasks::sets(&mut self.tasks, turn, found.tasks, before);
                let systems = Systems {
                    $($place: turn.tables(&mut self.$place, found.$place, old.map(|old| &*old.$place)),)*
                    ..Systems::default()
                };
                (Arc::new(sets), Arc::new(systems))
            }
        }

        impl Answers {
            pub(super) fn answers(&self) -> impl Iterator<Item = &Answer> {
                let tasks = self.tasks.iter().flat_map(|(schedules, log)| [schedules].into_iter().chain(log));
                tasks$(.chain(&self.$place))*
            }
        }

        /// The content of an earlier snapshot, if it is not known whether the tables still exist.
        pub(super) fn aged(before: &Snapshot, reason: &Text) -> (Arc<Vec<TaskSet>>, Arc<Systems>) {
            let (sets, old) = (&before.task_sets, &before.systems);
            let sets = sets.iter().map(|set| tasks::aged(set, reason)).collect();
            let systems = Systems {
                $($place: old.$place.iter().map(|table| table.stale(reason.clone())).collect(),)*
                ..Systems::default()
            };
            (Arc::new(sets), Arc::new(systems))
        }
    };
}

sources! {
    leases: Lease,
    counts: StateCount,
    items: Item,
    limits: RateLimit,
    generators: IdGenerator,
    workers: TaskWorker,
    contended: CountedWaits,
    refusals: Refusals,
}
