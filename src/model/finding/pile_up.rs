use std::collections::BTreeMap;

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::backend::{Backend, State};
use crate::model::observed::Observed;
use crate::text::count;

/// Waits for an `LWLock`, for input and output, and for a synchronous standby: `pg_locks` shows none of them.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let Observed::Read(backends) = look.snapshot.backends.observed() else { return Vec::new() };
    let mut waits: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for event in backends.iter().filter_map(event) {
        *waits.entry(event).or_default() += 1;
    }
    waits.retain(|_, number| *number >= look.thresholds.pile_up.max(1));
    let finding = |((kind, event), number): ((&str, &str), u32)| {
        let number_text = count(number.into());
        let summary = if event == "SyncRep" {
            format!("{number_text} backends wait for a synchronous standby (SyncRep)")
        } else {
            format!("{number_text} backends wait on {kind} {event}")
        };
        let finding = Finding::new("pile_up", Severity::Warning, summary, Subject::Server);
        Finding { blocked: number, ..finding }
    };
    waits.into_iter().map(finding).collect()
}

/// The wait event of an active backend, if it is of a kind that can pile up.
fn event(backend: &Backend) -> Option<(&str, &str)> {
    let working = matches!(backend.state?, State::Active | State::FastpathFunctionCall);
    let (kind, event) = (backend.wait_event_type.as_deref()?, backend.wait_event.as_deref()?);
    let piles_up = matches!(kind, "LWLock" | "IO") || event == "SyncRep";
    (working && piles_up).then_some((kind, event))
}
