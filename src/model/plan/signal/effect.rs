use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Effect, Verb};
use crate::model::wait_graph::{Party, Release};
use crate::text::count;

const NAMED: usize = 3;

/// The effect on all other sessions.
///
/// Cancelling a query ends its transaction: `AbortCurrentTransaction` in `src/backend/access/transam/xact.c` releases the
/// locks at once, even in a transaction block whose client has yet to notice. Locks acquired before a savepoint stay, and
/// so do session-level advisory locks. Neither is visible from outside, unless the query is the whole transaction.
pub(in crate::model::plan) fn of(index: &PlanIndex<'_>, verb: Verb, parties: &[Party]) -> Effect {
    let look = index.look();
    let release = look.release(verb, parties);
    let promise = look.promise_of(verb, parties);
    let blocks = match promise.blocked {
        // Sessions that wait for one another are all targets.
        0 if parties.len() > 1 => "no other session".to_owned(),
        0 => "no session".to_owned(),
        _ => promise.words().trim_start_matches("blocks ").to_owned(),
    };
    let named = named(index, verb, parties, &release);
    Effect { release, blocks, named }
}

fn named(
    index: &PlanIndex<'_>,
    verb: Verb,
    parties: &[Party],
    release: &Release,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let list = |lines: &mut Vec<_>, label: &'static str, parties: &[Party]| {
        if !parties.is_empty() {
            lines.push((label, some(index, parties)));
        }
    };
    let root = root(index, parties);
    list(&mut lines, "now", &release.now);
    list(&mut lines, "in turn", &release.in_turn);
    if !release.still.is_empty() && root.is_none() {
        list(&mut lines, "still", &release.still);
        list(&mut lines, "by", &release.others);
        if release.more {
            lines.push((
                "maybe by",
                "others that are not known yet: one of those above waits for several sessions".to_owned(),
            ));
        }
    }
    if !release.unsure.is_empty() {
        list(&mut lines, "unsure", &release.unsure);
        list(&mut lines, "maybe by", &release.possible);
    }
    if release.standby {
        lines.push(("by", "a synchronous standby: each of them waits for it when it commits".to_owned()));
    }
    if verb == Verb::Cancel && !release.unsure.is_empty() && release.possible.is_empty() && !release.standby {
        let why = "a cancel keeps session locks, and what was locked before a savepoint".to_owned();
        lines.push(("because", why));
    }
    if let Some(root) = root {
        let frees = match verb {
            _ if !release.now.is_empty() || !release.unsure.is_empty() => "",
            Verb::Cancel => "this frees no session; ",
            _ => "terminating this frees no session; ",
        };
        lines.push(("root", format!("{frees}the root is {root}")));
    }
    lines
}

/// `4466 app@web-0, 4467 app@web-1, 4468 app@web-2, 13 more`.
fn some(index: &PlanIndex<'_>, parties: &[Party]) -> String {
    let mut names: Vec<String> = parties.iter().take(NAMED).map(|party| index.party_name(*party)).collect();
    if let Some(more) = parties.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push(format!("{} more", count(more as u64)));
    }
    names.join(", ")
}

fn root(index: &PlanIndex<'_>, parties: &[Party]) -> Option<String> {
    let [party] = parties else { return None };
    let above = index.graph.roots_above(*party);
    let first = *above.first()?;
    let name = index.party_name(first);
    let more = match above.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let root = index.graph.roots.iter().find(|root| root.party == first);
    let does = root.map(|root| index.look().promise(root).numbers(true)).unwrap_or_default();
    Some(format!("{name}{more}: {does}"))
}
