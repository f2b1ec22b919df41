use crate::model::finding::{Finding, Severity, Subject};
use crate::sample::{self, Builder};

fn reported(builder: Builder) -> Vec<Finding> {
    let view = builder.view();
    let checks = ["orphan_task", "slow_task", "leaked_lock", "overdue_task", "idle_session_lock"];
    view.findings.iter().filter(|finding| checks.contains(&finding.check)).cloned().collect()
}

#[test]
fn task_findings_show_the_worker_the_age_and_the_limit() {
    let reported = reported(sample::jobs(0.0));
    let summaries: Vec<&str> = reported.iter().map(|finding| &*finding.summary).collect();
    assert_eq!(
        summaries,
        [
            "报表生成任务 orphaned, worker-7 last seen 41m00s ago",
            "数据清理任务 slow: running 12m05s on worker-3, limit 10m00s",
            "billing close overdue 12m00s, no worker runs it",
            "refresh the materialized views of every tenant overdue 3m05s, no worker runs it",
            "6106 holds \"send digests\" for 1m00s but runs nothing: a leaked task lock",
        ]
    );
    assert!(reported.iter().all(|finding| finding.severity == Severity::Warning));
    assert!(reported.iter().all(|finding| matches!(finding.subject, Subject::Task(_))));
}

#[test]
fn without_a_heartbeat_the_age_of_an_orphan_is_a_lower_bound() {
    let mut b = sample::jobs(0.0);
    b.executions.iter_mut().for_each(|execution| execution.heartbeat_at = None);
    let reported = reported(b);
    let orphan = reported.iter().find(|finding| finding.check == "orphan_task").unwrap();
    assert_eq!(&*orphan.summary, "报表生成任务 orphaned, worker-7 last seen ≥1m00s ago");
}

#[test]
fn many_overdue_tasks_are_one_finding_with_one_cause() {
    let mut b = Builder::default();
    for id in 0..500 {
        b.task(id, &format!("task-{id}"), "sql", 60.0, 100.0 + 7.0 * f64::from(u32::try_from(id).unwrap()));
    }
    let reported = reported(b);
    assert_eq!(reported.len(), 1);
    assert_eq!(&*reported[0].summary, "500 tasks overdue, no worker runs them; the first is task-499 59m53s");
}

#[test]
fn a_worker_that_sits_on_the_key_of_its_task_is_no_idle_session() {
    let mut b = sample::jobs(0.0);
    for backend in b.backends.iter_mut().filter(|backend| (6100..6110).contains(&backend.pid)) {
        backend.state_change = Some(sample::at(-4000.0));
    }
    assert!(reported(b).iter().all(|finding| finding.check != "idle_session_lock"));
}

#[test]
fn a_worker_with_a_live_session_but_no_heartbeat_is_reported() {
    let mut b = sample::jobs(0.0);
    let running = b.executions.iter_mut().find(|execution| execution.worker.as_deref() == Some("worker-1"));
    running.unwrap().heartbeat_at = Some(sample::at(-90.0));
    let view = b.view();
    let silent: Vec<_> = view.findings.iter().filter(|finding| finding.check == "silent_worker").collect();
    let [silent] = silent[..] else { panic!("{silent:?}") };
    assert_eq!(
        &*silent.summary,
        "数据同步任务 runs on worker-1, without a heartbeat for 1m30s: stopped or hung"
    );
    assert!(silent.about.contains("6101 is alive and holds its lock"), "{}", silent.about);
    let mut b = sample::jobs(0.0);
    b.executions.iter_mut().for_each(|execution| execution.heartbeat_at = Some(sample::at(-29.0)));
    assert!(
        b.view().findings.iter().all(|finding| finding.check != "silent_worker"),
        "a heartbeat may still arrive"
    );
}
