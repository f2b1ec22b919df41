//! A section that could not be read.

use super::look::Look;
use super::{Finding, Severity, Subject};
use crate::model::snapshot::Section;

/// One finding for each section whose last attempt failed, with the age of what is shown instead.
pub(super) fn check(look: &Look<'_>) -> Vec<Finding> {
    let snapshot = look.scene.snapshot;
    let tasks = snapshot
        .task_sets
        .iter()
        .flat_map(|set| [stale(look, "tasks", &set.tasks), stale(look, "executions", &set.executions)]);
    let systems = &snapshot.systems;
    let leases = systems.leases.iter().map(|table| stale(look, "leases", &table.section));
    // Its items are of the same table.
    let queue = systems.counts.iter().map(|table| stale(look, "queue", &table.section));
    let limits = systems.limits.iter().map(|table| stale(look, "rate_limits", &table.section));
    let generators = systems.generators.iter().map(|table| stale(look, "id_generators", &table.section));
    [
        stale(look, "server", &snapshot.server),
        stale(look, "backends", &snapshot.backends),
        stale(look, "locks", &snapshot.locks),
        stale(look, "prepared", &snapshot.prepared),
    ]
    .into_iter()
    .chain(tasks)
    .chain(leases)
    .chain(queue)
    .chain(limits)
    .chain(generators)
    .flatten()
    .collect()
}

fn stale<T>(look: &Look<'_>, name: &'static str, section: &Section<T>) -> Option<Finding> {
    let error = section.error.as_ref()?;
    let state = match section.taken_at {
        Some(taken_at) => format!("{name}:{} old", look.age_text(Some(taken_at))),
        None => format!("{name}: never read"),
    };
    let finding =
        Finding::new("stale_section", Severity::Warning, format!("{state}, {error}"), Subject::Section(name));
    Some(Finding { since: section.taken_at, ..finding.short(state) })
}
