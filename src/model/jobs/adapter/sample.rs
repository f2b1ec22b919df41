use std::sync::Arc;

use super::{
    ActionKind, Adapter, AdapterAction, AdapterLease, AdapterSchedule, Depth, Evidence, Installation,
    InstallationRows, Job, Part, Paused, Proof, Template, TemplateWords, Worker,
};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};
use chrono::TimeDelta;

pub(crate) fn read<T>(now: Timestamp, rows: Vec<T>) -> Section<T> {
    Section::fresh(rows, now)
}

pub(crate) fn empty(title: &str, schema: &str, oid: u32, evidence: Evidence) -> InstallationRows {
    let adapter = Adapter {
        name: title.to_lowercase().replace(' ', "_").into(),
        title: title.into(),
        evidence,
        comes_back: vec![
            (Proof::Heartbeat, "as failed, when a supervisor prunes it".into()),
            (Proof::Absent, "never".into()),
        ],
        ..Adapter::default()
    };
    InstallationRows::new(Arc::new(Installation {
        adapter: Arc::new(adapter),
        oid,
        schema: schema.into(),
        version: Some("1.2".into()),
        ..Installation::default()
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "every column may be NULL")]
fn some(text: &str) -> Option<Text> {
    Some(text.into())
}

fn depth(queue: Option<&str>, state: &str, number: u64, is_estimate: bool) -> Depth {
    Depth { queue: queue.map(Into::into), state: state.into(), number, is_estimate, oldest_at: None }
}

fn job(id: &str, name: &str, queue: &str, state: &str) -> Job {
    Job { id: id.into(), name: some(name), queue: some(queue), state: state.into(), ..Job::default() }
}

/// Workers with heartbeats: one recent, one 7 minutes old, one stopped.
pub(crate) fn beating(now: Timestamp) -> InstallationRows {
    let ago = |seconds: i64| Some(now - TimeDelta::seconds(seconds));
    let evidence = Evidence {
        absent_is_lost: true,
        lists_workers: true,
        beat_seconds: Some(300.0),
        ..Evidence::default()
    };
    let worker = |id: &str, name: &str, beat: i64| Worker {
        id: id.into(),
        name: some(name),
        host: some("web-1.internal"),
        kind: some("Worker"),
        queues: some("billing,mail"),
        capacity: Some(3),
        started_at: ago(7_300),
        beat_at: ago(beat),
        ..Worker::default()
    };
    let running = |id: &str, name: &str, worker: &str, started: i64| Job {
        worker: some(worker),
        started_at: ago(started),
        attempt: Some(1),
        ..job(id, name, "billing", "running")
    };
    let due =
        |id: &str, name: &str, queue: &str, due: i64| Job { due_at: ago(due), ..job(id, name, queue, "due") };
    let mut rows = empty("Solid Queue", "public", 100, evidence);
    let stopped = Worker { stopped_at: ago(60), ..worker("3", "web-1:4713", 60) };
    rows.workers = read(now, vec![worker("1", "web-1:4711", 12), worker("2", "web-1:4712", 424), stopped]);
    rows.jobs.insert(
        Part::Running,
        read(now, vec![running("11", "InvoiceJob", "1", 14), running("12", "DunningJob", "2", 724)]),
    );
    rows.jobs.insert(
        Part::Due,
        read(now, vec![due("13", "MailJob", "mail", 2), due("14", "InvoiceJob", "billing", 900)]),
    );
    rows.depth = read(
        now,
        vec![
            depth(Some("billing"), "due", 1_204, false),
            depth(Some("mail"), "due", 1, false),
            depth(None, "scheduled", 17, false),
            depth(None, "failed", 10_001, false),
            depth(None, "done", 1_204_331, true),
        ],
    );
    rows.paused = read(now, vec![Paused { queue: "reports".into(), since: ago(3_600) }]);
    let semaphore = |id: &str, left: i64, is_held: bool| AdapterLease {
        id: id.into(),
        acquired_at: ago(30),
        expires_at: ago(-left),
        is_held: Some(is_held),
        note: some(if is_held { "free: 0" } else { "free: 2" }),
        ..AdapterLease::default()
    };
    rows.leases = read(now, vec![semaphore("account/17", 150, true), semaphore("account/18", 150, false)]);
    let nightly = AdapterSchedule {
        id: "nightly".into(),
        name: some("CleanupJob"),
        schedule: some("every day at 3am"),
        queue: some("low"),
        ..AdapterSchedule::default()
    };
    rows.schedules = read(now, vec![nightly]);
    rows
}

/// Workers that hold an advisory lock each: the keys are (0, 41) and (0, 42).
pub(crate) fn locking(now: Timestamp) -> InstallationRows {
    let evidence = Evidence { has_key: true, lists_workers: true, ..Evidence::default() };
    let worker = |id: &str, key: i64| Worker {
        id: id.into(),
        key: Some(LockKey::Bigint(key)),
        started_at: Some(now - TimeDelta::seconds(7_300)),
        ..Worker::default()
    };
    let mut rows = empty("GoodJob", "jobs", 200, evidence);
    rows.workers = read(now, vec![worker("a", 41), worker("b", 42)]);
    rows.depth =
        read(now, vec![depth(Some("default"), "due", 9_000, false), depth(Some("low"), "due", 1_001, false)]);
    rows
}

/// Leases without jobs: one without an end, one that is held, one that has ended, one without any data.
pub(crate) fn leasing(now: Timestamp) -> InstallationRows {
    let ago = |seconds: i64| Some(now - TimeDelta::seconds(seconds));
    let lease =
        |id: &str, owner: &str| AdapterLease { id: id.into(), owner: some(owner), ..AdapterLease::default() };
    let mut rows = empty("Liquibase", "public", 300, Evidence::default());
    rows.leases = read(
        now,
        vec![
            AdapterLease {
                acquired_at: ago(10_920),
                is_held: Some(true),
                note: some("never released automatically: liquibase release-locks"),
                ..lease("changelog 1", "pod-7 (10.0.0.7)")
            },
            AdapterLease { acquired_at: ago(4), expires_at: ago(-56), ..lease("reports", "app-2") },
            AdapterLease { acquired_at: ago(400), expires_at: ago(340), ..lease("mails", "app-1") },
            lease("odd", "unknown"),
        ],
    );
    rows
}

/// The same installation with actions allowed. The statement names these tables, and all required values.
pub(crate) fn acting(
    rows: InstallationRows,
    kind: ActionKind,
    tables: &[(&str, &str)],
    then: &str,
) -> InstallationRows {
    let keys: Vec<Text> = tables.iter().map(|(key, _)| (*key).into()).collect();
    let telling = kind.identifying_values().first().map_or("", |value| value.as_str());
    let named: Vec<String> = keys.iter().map(|key| format!("{{{key}}} {key}")).collect();
    let text =
        format!("WITH x AS (SELECT FROM {}) UPDATE x SET a = {{id}}, b = {{{telling}}}", named.join(", "));
    let words = TemplateWords { tables: &keys, settings: &[], has_each: false, action: Some(kind) };
    let action = AdapterAction {
        kind,
        needs: Vec::new(),
        proofs: vec![Proof::Heartbeat],
        holds_key: false,
        writes: keys.clone(),
        sql: Template::parse(&text, words).unwrap(),
        then: then.into(),
        late: Some("if it is still running, its late end also ends the second run".into()),
    };
    let adapter =
        Adapter { actions: vec![action], allows_actions: true, ..(*rows.installation.adapter).clone() };
    let tables = tables.iter().map(|(key, table)| ((*key).into(), (*table).into())).collect();
    let installation = Installation { adapter: Arc::new(adapter), tables, ..(*rows.installation).clone() };
    InstallationRows { installation: Arc::new(installation), ..rows }
}
