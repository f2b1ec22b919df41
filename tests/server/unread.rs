//! Each statement that reads × each way to fail: no problem of the server becomes OK because it could not be read.
//!
//! The server has each of the problems that `check` detects in tables and locks. Then one statement of the
//! list ([`locktop::pg::sql`]) fails on its way, by a timeout, a lock, a missing permission, a wrong type or
//! a lost connection. A check that was WARNING or CRITICAL is still so, or UNKNOWN; and then a finding, the
//! JSON and the pane report what could not be read.

#[path = "../support/suite.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use locktop::config::adapter::built_in;
use locktop::feed::once::snapshots;
use locktop::model::lock_name::LockNames;
use locktop::model::thresholds::Thresholds;
use locktop::model::view::View;
use locktop::output::check::{self, CheckReport, Status};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollLimits;
use locktop::pg::sql::STATEMENTS;
use locktop::schema::{self, SchemaName};

use super::faults::{Fault, Faults};
use futures_util::future::join_all;
use support::{database, is_long, open, server_of, versions, wait_until};

/// The problems: a task is overdue, an execution has lost its session, a lease has expired, an item has failed, a job of another system
/// has lost its worker. Two sessions wait for a third.
const PROBLEMS: &str = "
    INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at) VALUES ('payroll', 'x', now() - interval '1 hour');
    INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at) VALUES ('mail', 'x', now() + interval '1 hour');
    INSERT INTO locktop.task_execution_log (task_id, worker_id, status, started_at, heartbeat_at, backend_pid, backend_start)
        SELECT id, 'gone', 'running', now() - interval '1 hour', now() - interval '1 hour', 1, now() - interval '2 hours'
          FROM locktop.scheduled_tasks WHERE task_name = 'mail';
    SELECT locktop.lease_acquire(7, 'node1', interval '1 second');
    INSERT INTO locktop.task_queue (task_name, status) VALUES ('report', 'failed');
    CREATE TABLE orders (id int);";

/// Limits of the checks, so that two waiting sessions are too many.
fn limits() -> check::CheckLimits {
    let range = |text: &str| text.parse().unwrap();
    let warning = [("waiting", "0"), ("worst_root", "1")];
    check::CheckLimits {
        warning: warning.into_iter().map(|(name, text)| (name.to_owned(), range(text))).collect(),
        ..check::CheckLimits::default()
    }
}

/// Short timeouts of the client; the server's are those of the product.
fn polling() -> PollLimits {
    let adapters = built_in().unwrap().into_iter().map(Arc::new).collect();
    PollLimits { adapters, ..PollLimits::default() }
}

/// A check of `count` snapshots, and the first of them.
pub(crate) async fn checked(
    info: &ConnInfo,
    polling: PollLimits,
    count: u32,
) -> Option<(CheckReport, Arc<View>)> {
    let with = (polling, Thresholds::default(), LockNames::default());
    let (views, connect) = snapshots(info, with, None, (count, Duration::from_millis(50))).await.ok()?;
    let report = CheckReport::of(&views, connect, Duration::from_millis(50), &limits());
    Some((report, Arc::clone(&views[0])))
}

pub(crate) fn statuses(report: &CheckReport) -> BTreeMap<&'static str, Status> {
    report.checks.iter().map(|judged| (judged.name, judged.status)).collect()
}

pub(crate) fn is_bad(status: Status) -> bool {
    matches!(status, Status::Warning | Status::Critical)
}

const SIDE_BY_SIDE: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_failed_statement_turns_a_bad_check_into_ok() {
    let newest = versions().into_iter().max().into_iter().collect();
    for version in if is_long() { versions() } else { newest } {
        let server = server_of(version).await;
        let own = database(server).await;
        let mut admin = open(&own).await.client;
        schema::install(&mut admin, &SchemaName::default()).await.unwrap();
        admin.batch_execute(PROBLEMS).await.unwrap();
        admin.batch_execute(include_str!("adapters/tables/river.sql")).await.unwrap();
        let (holder, waiter, second) =
            (open(&own).await.client, open(&own).await.client, open(&own).await.client);
        holder.batch_execute("BEGIN; LOCK TABLE orders").await.unwrap();
        for client in [waiter, second] {
            tokio::spawn(async move { client.batch_execute("SELECT * FROM orders").await });
        }
        let faults = Faults::before(server).await;
        let info = faults.info("postgres", own.dbname());
        let mut before = BTreeMap::new();
        // The lease expires within a second.
        wait_until("all checks to be bad", async || {
            faults.sent();
            let Some((report, _)) = checked(&info, polling(), 1).await else { return false };
            before = statuses(&report);
            let wanted =
                ["waiting", "worst_root", "tasks_overdue", "tasks_orphan", "leases_expired", "queue_failed"];
            wanted.iter().all(|name| before.get(name).copied().is_some_and(is_bad))
        })
        .await;
        let sent: BTreeSet<&str> = faults.sent().into_iter().collect();
        assert!(sent.len() >= 15, "{sent:?}");
        for name in ["adapter_part", "adapter_planned", "adapter_understood", "adapters_find", "tables_find"]
        {
            assert!(sent.contains(name), "{name} is not among {sent:?}");
        }
        let sent: Vec<&str> =
            STATEMENTS.iter().map(|statement| statement.name).filter(|name| sent.contains(name)).collect();
        let cells: Vec<_> = sent.iter().flat_map(|name| Fault::ALL.map(|fault| (*name, fault))).collect();
        // Several at once, each behind a proxy of its own.
        let cells = cells.chunks(cells.len().div_ceil(SIDE_BY_SIDE)).map(async |cells| {
            let faults = Faults::before(server).await;
            let info = faults.info("postgres", own.dbname());
            let mut lost = 0;
            for (name, fault) in cells {
                let cell = format!("{name} {fault:?} on {version}");
                faults.heal();
                faults.fail(name, *fault);
                // Without a snapshot there is no report, and `check` is UNKNOWN.
                let Some((report, view)) = checked(&info, polling(), 1).await else { continue };
                lost += verify(&cell, &before, &report, &view);
            }
            lost
        });
        let lost: usize = join_all(cells).await.into_iter().sum();
        assert!(lost > 20, "in {lost} cells something was not known");
        holder.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// 1 if a check that was bad is UNKNOWN now; then every output has to report it.
fn verify(cell: &str, before: &BTreeMap<&'static str, Status>, report: &CheckReport, view: &View) -> usize {
    let now = statuses(report);
    assert_ne!(report.status(), Status::Ok, "{cell}: {report:?}");
    let mut unknown = Vec::new();
    for (name, _) in before.iter().filter(|(_, status)| is_bad(**status)) {
        let status = now.get(name).copied();
        assert!(
            status.is_some_and(|status| is_bad(status) || status == Status::Unknown),
            "{cell}: {name} was bad and is {status:?}"
        );
        unknown.extend((status == Some(Status::Unknown)).then_some(*name));
    }
    if unknown.is_empty() {
        return 0;
    }
    let snapshot = view.snapshot.as_deref().unwrap();
    let findings: Vec<_> = view.findings.iter().map(|finding| (finding.check, &*finding.summary)).collect();
    assert!(!snapshot.unread().is_empty(), "{cell}: {unknown:?} not known, and every section is");
    assert!(
        view.findings.iter().any(|finding| ["stale_section", "adapter"].contains(&finding.check)),
        "{cell}: no finding reports that {unknown:?} is not known: {findings:?}"
    );
    let json = locktop::output::json::to_string(view).unwrap().unwrap();
    assert!(json.contains("\"known\":false"), "{cell}: the JSON states that all is known");
    let page = locktop::app::print::render(view, Some(200)).unwrap();
    let unread = snapshot.unread();
    let mut reasons = unread.iter().filter_map(|read| read.error);
    assert!(reasons.any(|reason| page.contains(reason)), "{cell}: {page}");
    1
}
