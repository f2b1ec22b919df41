use super::super::lock_age::{age_words, lock_age};
use super::super::party::root_state;
use super::super::query;
use super::{name, requested};
use crate::app::context::Context;
use crate::app::detail::{parties, party};
use crate::app::line::{Line, Tone};
use crate::model::awaited_locks::{AwaitedLock, Hold};
use crate::model::lock::{LockTag, LockType};
use crate::model::output::{Channel, shown};
use crate::model::wait_graph::Party;
use crate::text;

/// The title, and one line each; `None` if no session waits for the lock.
pub(in crate::app) fn strip(context: &Context<'_>, tag: &LockTag) -> Option<(String, Vec<Line>)> {
    let lock = context.awaited_lock(tag)?;
    let title = format!("{} · {}", name(context, lock), requested(lock, usize::MAX));
    let holder = match lock.holders.as_slice() {
        [] => "no session holds it now".to_owned(),
        [hold] => holds(context, lock, *hold),
        all => {
            let all: Vec<Party> = all.iter().map(|hold| hold.party).collect();
            format!("{} holders: {}", all.len(), parties(context, &all))
        }
    };
    let first = lock.waiters(&context.view.graph).next()?;
    let mode = if tag.locktype() == LockType::Tuple { "" } else { first.mode.short() };
    let first = format!("first in the queue: {} {mode}", party(context, first.party));
    let behind = match lock.queued() - 1 {
        0 => String::new(),
        behind => format!(", {} behind it", text::count(behind as u64)),
    };
    let lines = [holder, format!("{}{behind}", first.trim_end())];
    Some((title, lines.map(|line| Line::new().with(line, Tone::Plain)).into()))
}

/// `2053 report@metabase holds AccessShare, active 34s: SELECT count(*) FROM orders`
fn holds(context: &Context<'_>, lock: &AwaitedLock, hold: Hold) -> String {
    let what = if lock.tag.locktype() == LockType::Tuple { "the row" } else { hold.mode.short() };
    let is_its = |row: &&crate::model::lock::Lock| {
        row.granted && row.tag == hold.tag && row.pid == Some(hold.party.pid())
    };
    let age = context.snapshot.locks.last_rows().iter().find(is_its).and_then(|row| lock_age(context, row));
    let since = match hold.party {
        Party::Backend(_) => age.map(|age| format!(" for {}", age_words(age))).unwrap_or_default(),
        Party::Prepared(_) => String::new(),
    };
    let state = root_state(context, hold.party, usize::MAX).text;
    let state = if matches!(hold.party, Party::Prepared(_)) { String::new() } else { format!(", {state}") };
    let query = context.backend(hold.party.pid()).and_then(|backend| backend.query.as_ref());
    let query = query.filter(|query| !query.is_blank());
    let query = query.map(|query| format!(": {}", query::clean(&shown(Channel::Screen, query), u16::MAX)));
    format!("{} holds {what}{since}{state}{}", party(context, hold.party), query.unwrap_or_default())
}
