//! Systems that have a table for each queue: each queue is an installation.

use std::collections::BTreeMap;

use super::found::{FoundInstallation, FoundTable};
use crate::model::Text;

/// Queues of a schema that are read, of systems that have a table for each.
const EACH: usize = 20;

/// Tables by the keys of an adapter, by their schema and what is left of their names.
pub(super) type Places<'a> = BTreeMap<(&'a str, &'a str), BTreeMap<Text, &'a FoundTable>>;

/// Each queue has the tables that are there once.
pub(super) fn with_common(places: &mut Places<'_>) {
    let all = std::mem::take(places).into_iter();
    let (common, each): (Places<'_>, Places<'_>) = all.partition(|((_, rest), _)| rest.is_empty());
    *places = each;
    for ((schema, _), tables) in places {
        tables.extend(
            common.get(&(*schema, "")).into_iter().flatten().map(|(key, table)| (key.clone(), *table)),
        );
    }
}

/// The queues of a schema that are read, in the order of their names, and one more that says so. Those that are refused take none of their
/// places, and there are no more of them than that.
pub(super) fn at_most(found: impl Iterator<Item = FoundInstallation>) -> Vec<FoundInstallation> {
    let (mut kept, mut left) = (Vec::new(), Vec::<FoundInstallation>::new());
    let mut counts: BTreeMap<(Text, bool), usize> = BTreeMap::new();
    for one in found {
        let count = counts.entry((one.schema.clone(), one.refused.is_none())).or_default();
        *count += 1;
        match (*count > EACH, left.last()) {
            (false, _) => kept.push(one),
            (true, Some(last)) if last.schema == one.schema => {}
            (true, _) => left.push(one),
        }
    }
    for one in &mut left {
        let count = |is_read| counts.get(&(one.schema.clone(), is_read)).copied().unwrap_or_default();
        let more = count(true).saturating_sub(EACH) + count(false).saturating_sub(EACH);
        one.refused = Some(
            format!(
                "it is one of {more} queues that are not read: only the first {EACH} of a schema are, by name"
            )
            .into(),
        );
    }
    kept.extend(left);
    kept
}
