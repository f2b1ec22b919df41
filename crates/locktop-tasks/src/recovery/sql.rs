use super::Order;
use super::plan::RecoveryPlan;
use super::running::Running;
use crate::message::{is, moment, note, number, packed, text};
use crate::schema::Schema;
use crate::sql::{fill, without_comments};
use locktop_base::Timestamp;

const LOOK: &str = include_str!("../../assets/sql/recovery/look.sql");
const RUNNING: &str = include_str!("../../assets/sql/recovery/running.sql");

pub(super) fn look(schema: &Schema) -> String {
    let (name, answer) = (text(schema.name.as_str()), packed("to_jsonb(q)"));
    fill(&without_comments(LOOK), &[("$name", &name), ("$answer", &answer)])
}

/// A statement that reads, calls or writes in the schema, after a check that fails if the schema is not to be trusted.
fn guarded(schema: &Schema, sql: &str) -> String {
    format!("{};\n{sql}", schema.guard())
}

/// The statement for the executions that are running by the log: `assets/sql/recovery/running.sql`.
pub(super) fn running(schema: &Schema) -> String {
    let (name, answer) = (schema.quoted(), packed("to_jsonb(q)"));
    guarded(schema, &fill(&without_comments(RUNNING), &[("$schema", &name), ("$answer", &answer)]))
}

/// The grace of a schema, in seconds.
pub(super) fn grace(schema: &Schema) -> String {
    let name = schema.quoted();
    guarded(schema, &format!("SELECT extract(epoch FROM {name}.orphan_grace())::double precision"))
}

pub(super) fn has_task(schema: &Schema, name: &str) -> String {
    let sql = format!("SELECT 1 FROM {}.scheduled_tasks WHERE task_name = {}", schema.quoted(), text(name));
    guarded(schema, &sql)
}

fn identity(schema: &Schema, seen: &Running) -> String {
    format!(
        "{}, {}, {}, {}, {}",
        seen.execution_id,
        worker(schema, seen),
        moment(seen.started_at),
        number(seen.backend_pid),
        moment(seen.backend_start),
    )
}

/// The worker as it was seen. If some of its bytes were invalid, the one in the row, provided that all the rest is the
/// same.
fn worker(schema: &Schema, seen: &Running) -> String {
    if !seen.worker_id.contains('\u{fffd}') {
        return text(&seen.worker_id);
    }
    format!(
        "(SELECT e.worker_id FROM {}.task_execution_log AS e WHERE e.id = {} AND {})",
        schema.quoted(),
        seen.execution_id,
        is("e.worker_id", Some(&seen.worker_id)),
    )
}

/// Closes an execution. A sign of life after the plan was made prevents it, unless its session was terminated.
pub(super) fn recover(
    schema: &Schema,
    plan: &RecoveryPlan,
    seen: &Running,
    order: &Order,
    quiet: bool,
) -> String {
    let seen_at = moment(quiet.then_some(plan.taken_at));
    let sql = format!(
        "SELECT {} FROM {}.recover_seen_execution({}, {seen_at}, {}, {}) r",
        packed("to_jsonb(r)"),
        schema.quoted(),
        identity(schema, seen),
        note(&order.actor.to_string()),
        reason(order),
    );
    guarded(schema, &sql)
}

fn reason(order: &Order) -> String {
    order.reason.as_deref().map_or_else(|| "NULL".to_owned(), note)
}

/// Records that the holder of a key is to be terminated.
pub(super) fn ask(schema: &Schema, seen: &Running, (pid, start): (i32, Timestamp), order: &Order) -> String {
    let sql = format!(
        "SELECT {} FROM {}.ask_seen_termination({}, {pid}, {}, {}, {}) r",
        packed("to_jsonb(r)"),
        schema.quoted(),
        identity(schema, seen),
        moment(Some(start)),
        note(&order.actor.to_string()),
        reason(order),
    );
    guarded(schema, &sql)
}

/// Terminates the session that this row of the audit requested to end, if it is still the same: `t`, otherwise `f`.
pub(super) fn terminate(schema: &Schema, audit_id: i64) -> String {
    guarded(schema, &format!("SELECT {}.terminate_task_holder({audit_id})", schema.quoted()))
}

/// Whether a process holds a key, without locking anything.
pub(super) fn holds(schema: &Schema, key: i64, pid: i32) -> String {
    let sql =
        format!("SELECT EXISTS (SELECT FROM {}.key_holders({key}) h WHERE h.pid = {pid})", schema.quoted());
    guarded(schema, &sql)
}
