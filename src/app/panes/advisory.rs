//! Held advisory locks: a pane of the Overview.

use super::backends::several_databases;
use super::column::Columns;
use super::definition::{Basis, Definition, Total};
use super::facts::Fact;
use super::locks::{self, KEY_HELP, LOCK_HELP, Locks, MODE_HELP, WAITERS_HELP};
use super::words::{DB, PID, WHO_HELP};
use super::{Value, lock_order, party};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::lock::LockType;

type Column = super::Column<Locks>;

static COLUMNS: Columns<Locks> = Columns {
    shown: &[
        Column::cell(("NAME", "lock", LOCK_HELP), (20, 40), |lock, context, room| {
            locks::label(context, lock, room)
        }),
        Column::sorted(
            ("MODE", "mode", MODE_HELP),
            (4, 9),
            |lock, _, room| locks::mode(lock, room),
            |lock, _| Value::text(Some(lock.mode.as_str())),
        ),
        Column::sorted(
            PID,
            (8, 8),
            |lock, _, _| locks::pid(lock),
            |lock, _| Value::whole(lock.pid.map(i64::from)),
        ),
        Column::cell(("OWNER", "who", WHO_HELP), (10, 24), |lock, context, room| {
            locks::who(context, lock, room)
        }),
        Column::sorted(
            ("HELD", "age", "how long it has been held"),
            (11, 11),
            |lock, context, room| locks::age(context, lock, room),
            |lock, context| Value::number(locks::seconds(context, lock)),
        )
        .right(),
        Column::number(("WAITERS", "waiters", WAITERS_HELP), (7, 7), Tone::Warning, |lock, context| {
            locks::waiters(context, lock)
        }),
        Column::cell(("KEY", "key", KEY_HELP), (12, 22), |lock, _, _| locks::key(lock)).rank(2),
        Column::text(DB, (6, 12), |lock, context| locks::database(context, lock))
            .rank(3)
            .only_where(several_databases),
        Column::sorted(
            ("STATE", "holder", "the state of the session that holds it"),
            (12, 0),
            |lock, context, _| party::root_state(context, locks::party(lock), 40),
            |lock, context| party::state_value(context, locks::party(lock)),
        ),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    order: lock_order::by_queue,
    basis: Basis::Locks,
    empty: "no advisory locks held",
    facts,
    ..Definition::new(("Advisory", "a lock of a session"), &COLUMNS, |context, _| {
        locks::rows(context, |lock| lock.granted && lock.tag.locktype() == LockType::Advisory)
    })
};

/// What the title says: `34 held · 2 waiting`.
fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let queues = context.view.graph.queues.iter().filter(|queue| queue.tag.locktype() == LockType::Advisory);
    let waiting: usize = queues.map(|queue| queue.waiters.len()).sum();
    let tone = if waiting > 0 { Tone::Warning } else { Tone::Plain };
    vec![
        (format!("{} held", crate::text::count(total.rows as u64)), Tone::Plain),
        (format!("{waiting} waiting"), tone),
    ]
}
