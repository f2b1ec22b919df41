//! Fails an execution in a published log, which names no session: only if the row is unchanged and no session works on
//! it.
//!
//! The row and its key are locked until the end of the transaction. If a session works on the row, it is terminated
//! first: the statement that signals compares the session, the key that it holds, and the row. Published tables leave
//! the task due.

use locktop_tasks::recovery::Order;
use tokio_postgres::Client;

use super::message::{Access, moment, note, number, send, shown};
use super::session::{self, Asking, Work};
use super::table::{Row, Table, free, refused};
use crate::model::adapter::ActionKind;
use crate::model::plan::rows::{ColumnKind, Condition};
use crate::model::plan::{AdapterTarget, Outcome, PublishedHolder, PublishedTarget, SessionTarget, Signal};
use crate::model::task::CLOSED;
use crate::pg::adapters::{act_message, find_statement};
use crate::pg::trust::TrustedOwners;
use crate::text::duration;

pub(super) fn short(target: &PublishedTarget) -> String {
    let PublishedTarget { source, id, key, worker, holder, .. } = target;
    let update = format!("UPDATE {source} SET status = 'failed' WHERE id = {id} if it is still running");
    match holder {
        PublishedHolder::None => format!("{update} and no session holds key {key}"),
        PublishedHolder::Worker(session) => format!(
            "{} and it runs execution {id} of {} in {source}; then {update}",
            session::short(Signal::Terminate, session),
            crate::text::one_line(worker)
        ),
        PublishedHolder::Other { pid, execution, .. } => {
            format!("{update} and no session but {pid} holds key {key}, for execution {execution}")
        }
    }
}

/// A result, and the process id of the session that was terminated for it.
pub(super) type Failed = (Outcome, String, Option<i32>);

pub(super) async fn fail(
    client: &Client,
    target: &PublishedTarget,
    order: &Order,
    owners: &TrustedOwners,
    offset: chrono::FixedOffset,
) -> Failed {
    let table = match Table::find(client, target.table, false, owners).await {
        Ok(table) => table,
        Err((outcome, detail)) => return (outcome, detail, None),
    };
    let row = Row { table: &table, id: format!("t.id = {}", target.id), conditions: conditions(target) };
    let mut ended_pid = None;
    if let PublishedHolder::Worker(session) = &target.holder {
        let work = Work { guard: table.guard().to_owned(), is_seen: row.is_still_seen() };
        if let Err(failed) = terminate(client, session, &work, order, offset).await {
            return failed;
        }
        ended_pid = Some(session.pid);
    }
    let act = row.update_while(&set(&table, target, order), &may_close(&table, target));
    let (outcome, detail) = match row.act(client, &act, &order.actor.role, false).await {
        Ok(answer) if answer.is_busy => {
            let detail = format!("a session holds key {}: a worker may be working on it", target.key);
            (Outcome::Refused, detail)
        }
        Ok(_) => (Outcome::Done, "marked as failed".to_owned()),
        Err(told) => told,
    };
    let ended = ended_pid.map(|pid| format!("session {pid} was terminated; ")).unwrap_or_default();
    (outcome, ended + &detail, ended_pid)
}

async fn terminate(
    client: &Client,
    session: &SessionTarget,
    work: &Work,
    order: &Order,
    offset: chrono::FixedOffset,
) -> Result<(), Failed> {
    if let Asking::Over(outcome, detail) =
        session::ask(client, Signal::Terminate, session, Some(work), offset).await
    {
        return Err((outcome, detail, None));
    }
    let (outcome, then) = match session::ended(client, session, order.wait).await {
        Ok(true) => return Ok(()),
        Ok(false) => {
            let waited = duration(order.wait.as_secs_f64());
            (Outcome::StillThere, format!(", but still exists after {waited}"))
        }
        Err(why) => (Outcome::Uncertain, format!("; then {why}")),
    };
    let pid = session.pid;
    Err((outcome, format!("session {pid} was terminated{then}"), Some(pid)))
}

fn conditions(target: &PublishedTarget) -> Vec<Condition> {
    let started = moment(Some(target.started_at));
    vec![
        Condition::new("it has ended", "t.status::text = 'running'"),
        Condition::cut("another worker holds it", "t.worker_id::text", Some(&target.worker)),
        Condition::same("its start has changed", "t.started_at::timestamptz", &started),
    ]
}

/// Whether no session works on the row, in SQL. This is certain after its session was terminated, even if another
/// session has taken the key since.
fn may_close(table: &Table, target: &PublishedTarget) -> String {
    let key = target.key;
    match &target.holder {
        PublishedHolder::None => free(Some(key)),
        PublishedHolder::Worker(_) => "true".to_owned(),
        PublishedHolder::Other { pid, backend_start, execution, worker } => {
            let other = Row {
                table,
                id: format!("t.id = {execution}"),
                conditions: vec![
                    Condition::new("it has ended", "t.status::text = 'running'"),
                    Condition::cut("another worker holds it", "t.worker_id::text", Some(worker)),
                ],
            };
            format!(
                "({} OR EXISTS (SELECT FROM pg_stat_get_activity({pid}) AS a JOIN pg_lock_status() AS l ON l.pid = a.pid \
                 WHERE a.backend_start = {} AND l.granted AND l.mode = 'ExclusiveLock' AND l.locktype = 'advisory' \
                 AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()) AND l.objsubid = 1 \
                 AND (l.classid::int8 << 32) | l.objid::int8 = {key}) AND {})",
                free(Some(key)),
                moment(Some(*backend_start)),
                other.is_still_seen()
            )
        }
    }
}

fn set(table: &Table, target: &PublishedTarget, order: &Order) -> String {
    let mut set = "status = 'failed'".to_owned();
    if matches!(table.kind("completed_at"), Some(ColumnKind::Zoned | ColumnKind::Time | ColumnKind::Date)) {
        set.push_str(", completed_at = clock_timestamp()");
    }
    if table.has("error_message") {
        let [ended, terminated, stale] = CLOSED;
        let why = match target.holder {
            PublishedHolder::None => ended,
            PublishedHolder::Worker(_) => terminated,
            PublishedHolder::Other { .. } => stale,
        };
        let reason = order.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        set.push_str(", error_message = ");
        set.push_str(&note(&format!("{why}{}{reason}", order.actor)));
    }
    set
}

pub(super) fn adapter_short(target: &AdapterTarget) -> String {
    let values = &target.values;
    let (id, who) = (shown(Some(&values.id)), shown(values.who.as_deref()));
    let since = values.since.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
    let since = since.unwrap_or_else(|| "NULL".to_owned());
    match target.kind {
        ActionKind::Recover => format!(
            "recover job {id} of {} if worker = {who} and attempt = {} and started_at = {since}",
            target.source,
            number(values.attempt)
        ),
        ActionKind::Unlock => {
            format!("end lease {id} of {} if owner = {who} and acquired_at = {since}", target.source)
        }
    }
}

/// Returns a job of another system to that system, or ends a lease of another system. The statement comes from the adapter:
/// it compares the target with what was seen, and makes the checks that the other system itself would make.
pub(super) async fn settle(
    client: &Client,
    target: &AdapterTarget,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let find = find_statement(owners, &target.installation.adapter);
    let found = match send(client, Access::ReadOnly, &find).await {
        Ok(rows) => rows,
        Err(error) => return (Outcome::Refused, format!("nothing was sent: {error}")),
    };
    let sql = match act_message(owners, target, &found) {
        Ok(sql) => sql,
        Err(why) => return (Outcome::Refused, why.to_string()),
    };
    match send(client, Access::ReadWrite, &sql).await {
        Ok(rows) => match (rows.len(), target.kind) {
            (0, ActionKind::Recover) => {
                let words = "it is another execution now, its worker works again, or its row is locked";
                (Outcome::Changed, words.to_owned())
            }
            (0, ActionKind::Unlock) => {
                (Outcome::Changed, "it has another owner now, or has ended".to_owned())
            }
            (1, _) => (Outcome::Done, target.then().to_owned()),
            (many, _) => {
                let all = format!("{many} rows had this id, and all of them were changed");
                (Outcome::Done, format!("{all}: {}", target.then()))
            }
        },
        Err(error) => {
            let needs = || {
                format!(
                    "the role needs: GRANT SELECT, INSERT, UPDATE, DELETE ON {}, \
                     and USAGE on the sequences of tables to which rows are added",
                    target.tables()
                )
            };
            refused(&error, "its table or its row", needs)
        }
    }
}
