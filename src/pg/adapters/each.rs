//! Systems that have one table per queue: each queue is an installation.

use std::collections::BTreeMap;

use super::found::{FoundInstallation, FoundTable};
use crate::model::Text;

/// Number of queues read per schema, for systems that have one table per queue.
const EACH: usize = 20;

/// Tables of an adapter by schema and rest of the table name, then by the adapter's key.
pub(super) type Places<'a> = BTreeMap<(&'a str, &'a str), BTreeMap<Text, &'a FoundTable>>;

/// Adds the tables that exist once to each queue.
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

/// The queues of a schema that are read, by name, and one more entry that reports the rest. Refused queues do not use up
/// the limit, and have the same limit of their own.
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
