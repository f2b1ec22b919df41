use super::Value;
use super::backends::{self, several_databases};
use super::column::{Columns, DB, PID, WHO_HELP};
use super::definition::{Basis, Definition, Total};
use super::facts::Fact;
use super::held::{self, Held, KEY_HELP, LOCK_HELP, MODE_HELP, WAITERS_HELP};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::lock::LockType;

type Column = super::Column<Held>;

static COLUMNS: Columns<Held> = Columns {
    shown: &[
        Column::cell(("NAME", "lock", LOCK_HELP), (20, 40), |lock, context, room| {
            held::label(context, lock, room)
        }),
        Column::sorted(
            ("MODE", "mode", MODE_HELP),
            (4, 9),
            |lock, _, room| held::mode(lock, room),
            |lock, _| Value::text(Some(lock.mode.as_str())),
        ),
        Column::sorted(
            PID,
            (8, 8),
            |lock, _, _| held::pid(lock),
            |lock, _| Value::whole(lock.pid.map(i64::from)),
        ),
        Column::cell(("OWNER", "who", WHO_HELP), (10, 24), |lock, context, room| {
            held::who(context, lock, room)
        }),
        Column::sorted(
            ("HELD", "age", "how long it has been held"),
            (11, 11),
            |lock, context, room| held::age(context, lock, room),
            |lock, context| Value::number(held::seconds(context, lock)),
        )
        .right(),
        Column::number(("WAITERS", "waiters", WAITERS_HELP), (7, 7), Tone::Warning, |lock, context| {
            held::waiters(context, lock)
        }),
        Column::cell(("KEY", "key", KEY_HELP), (12, 22), |lock, _, _| held::key(lock)).rank(2),
        Column::text(DB, (6, 12), |lock, context| held::database(context, lock))
            .rank(3)
            .only_where(several_databases),
        Column::sorted(
            ("STATE", "holder", "the state of the session that holds it"),
            (12, 0),
            |lock, context, _| backends::root_state(context, held::party(lock), 40),
            |lock, context| backends::state_value(context, held::party(lock)),
        ),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    order: held::by_queue,
    basis: Basis::Locks,
    empty: "no advisory locks held",
    facts,
    ..Definition::new(("Advisory", "a lock of a session"), &COLUMNS, |context, _| {
        held::rows(context, |lock| lock.granted && lock.tag.locktype() == LockType::Advisory)
    })
};

/// The title: `34 held · 2 waiting`.
fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let queues = context.view.graph.queues.iter().filter(|queue| queue.tag.locktype() == LockType::Advisory);
    let waiting: usize = queues.map(|queue| queue.waiters.len()).sum();
    let tone = if waiting > 0 { Tone::Warning } else { Tone::Plain };
    vec![
        (format!("{} held", crate::text::count(total.rows as u64)), Tone::Plain),
        (format!("{} waiting", crate::text::count(waiting as u64)), tone),
    ]
}
