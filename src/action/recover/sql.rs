//! The statements of a recovery.

use super::execute::Order;
use crate::action::message::{moment, nullable, number, text};
use crate::model::Timestamp;
use crate::model::plan::{RecoveryPlan, Running};
use crate::pg::{fill, without_comments};
use crate::schema::Schema;

const LOOK: &str = include_str!("../../../assets/sql/recover_look.sql");
const RUNNING: &str = include_str!("../../../assets/sql/recover_running.sql");

/// Where we are, and what there is of the schema.
pub(super) fn look(schema: &Schema) -> String {
    fill(&without_comments(LOOK), &[("$name", &text(schema.name.as_str()))])
}

/// A statement that reads, calls or writes something in the schema, behind what fails where that is not to be trusted.
fn guarded(schema: &Schema, sql: &str) -> String {
    format!("{};\n{sql}", schema.guard())
}

/// What runs by the log.
pub(super) fn running(schema: &Schema) -> String {
    guarded(schema, &fill(&without_comments(RUNNING), &[("$schema", &schema.quoted())]))
}

/// Whether there is a task of this name.
pub(super) fn has_task(schema: &Schema, name: &str) -> String {
    let sql = format!("SELECT 1 FROM {}.scheduled_tasks WHERE task_name = {}", schema.quoted(), text(name));
    guarded(schema, &sql)
}

/// What tells an execution from every other one.
fn identity(seen: &Running) -> String {
    format!(
        "{}, {}, {}, {}, {}",
        seen.execution_id,
        text(&seen.worker_id),
        moment(seen.started_at),
        number(seen.backend_pid),
        moment(seen.backend_start),
    )
}

/// Closes an execution. A sign of life after the plan was made stands in the way, unless its session was ended.
pub(super) fn recover(
    schema: &Schema,
    plan: &RecoveryPlan,
    seen: &Running,
    order: &Order,
    quiet: bool,
) -> String {
    let seen_at = moment(quiet.then_some(plan.taken_at));
    let sql = format!(
        "SELECT to_jsonb(r) FROM {}.recover_seen_execution({}, {seen_at}, {}, {}) r",
        schema.quoted(),
        identity(seen),
        text(&order.actor.to_string()),
        nullable(order.reason.as_deref()),
    );
    guarded(schema, &sql)
}

/// Records that the holder of a key is to be ended.
pub(super) fn ask(schema: &Schema, seen: &Running, (pid, start): (i32, Timestamp), order: &Order) -> String {
    let sql = format!(
        "SELECT to_jsonb(r) FROM {}.ask_seen_termination({}, {pid}, {}, {}, {}) r",
        schema.quoted(),
        identity(seen),
        moment(Some(start)),
        text(&order.actor.to_string()),
        nullable(order.reason.as_deref()),
    );
    guarded(schema, &sql)
}

/// Ends it.
pub(super) fn terminate(schema: &Schema, audit_id: i64) -> String {
    guarded(schema, &format!("SELECT {}.terminate_task_holder({audit_id})", schema.quoted()))
}

/// Whether a process has a key, without locking anything.
pub(super) fn holds(schema: &Schema, key: i64, pid: i32) -> String {
    let sql =
        format!("SELECT EXISTS (SELECT FROM {}.key_holders({key}) h WHERE h.pid = {pid})", schema.quoted());
    guarded(schema, &sql)
}
