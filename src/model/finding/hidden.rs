//! Tables of untrusted roles that precede others of the same name in the search path.

use std::collections::BTreeSet;

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::owner::Owner;
use crate::model::systems::{Source, TableRows};

/// One finding for each such table. locktop reads both tables; an application that uses the unqualified name may find the
/// wrong one.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    fn of<T>(tables: &[TableRows<T>]) -> impl Iterator<Item = (&str, &Owner)> {
        tables.iter().map(|table| {
            let Source { name, owner, .. } = &*table.source;
            (&**name, owner)
        })
    }
    let (snapshot, systems) = (look.snapshot, &look.snapshot.systems);
    let sets = snapshot.task_sets.iter().map(|set| (&*set.tables.schedules, &set.tables.owner));
    let all = sets
        .chain(of(&systems.leases))
        .chain(of(&systems.counts))
        .chain(of(&systems.limits))
        .chain(of(&systems.generators))
        .chain(of(&systems.workers))
        .chain(of(&systems.contended));
    let hiding: BTreeSet<_> = all
        .filter_map(|(name, owner)| Some((name, owner.stranger.as_deref()?, owner.hides.as_deref()?)))
        .collect();
    hiding.into_iter().map(|(name, owner, hides)| finding(name, owner, hides)).take(LIMIT).collect()
}

fn finding(name: &str, owner: &str, hides: &str) -> Finding {
    let short = format!("{name} of {owner} is before {hides} on the search path");
    let summary = format!("{short}: {owner} is not trusted; both are read");
    Finding::new("hidden_table", Severity::Info, summary, Subject::Server).short(short)
}
