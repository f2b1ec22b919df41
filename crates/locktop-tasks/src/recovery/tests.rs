use locktop_base::Timestamp;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

fn slow() -> RunningExecution {
    RunningExecution {
        execution_id: 7,
        task_id: 1,
        task_name: "report".to_owned(),
        worker_id: "w".to_owned(),
        state: RunState::Slow,
        started_at: Some(at(0)),
        heartbeat_at: Some(at(90)),
        run_seconds: Some(3_600.0),
        timeout_seconds: Some(1_800.0),
        attempt: 2,
        max_attempts: 3,
        retry_seconds: Some(20.0),
        is_scheduled: true,
        is_enabled: true,
        lock_id: Some(42),
        holder_pid: Some(4312),
        holder_start: Some(at(-5)),
        held_by_prepared: false,
        backend_pid: Some(4312),
        backend_start: Some(at(-5)),
    }
}

fn orphan() -> RunningExecution {
    RunningExecution { state: RunState::Orphan, holder_pid: None, holder_start: None, ..slow() }
}

fn planned(running: RunningExecution, select: Selection, terminate: bool) -> RecoveryPlan {
    let request = Request { select, task: None, terminate };
    RecoveryPlan::of("locktop", at(4_000), 30.0, &[running], &request)
}

fn step_of(running: RunningExecution, terminate: bool) -> Step {
    planned(running, Selection::Executions(vec![7]), terminate).rows[0].step
}

#[test]
fn a_session_is_ended_only_when_asked_and_sure() {
    assert_eq!(step_of(orphan(), false), Step::Recover);
    assert_eq!(step_of(slow(), false), Step::Leave(Reason::Held));
    assert_eq!(step_of(slow(), true), Step::Terminate { pid: 4312, start: at(-5) });
    for (running, reason) in [
        (RunningExecution { state: RunState::Running, ..slow() }, Reason::InTime),
        (RunningExecution { state: RunState::Settling, ..orphan() }, Reason::Settling),
        (RunningExecution { state: RunState::Unknown, ..slow() }, Reason::Unknown),
        (RunningExecution { held_by_prepared: true, ..slow() }, Reason::Prepared),
        (RunningExecution { holder_pid: Some(1), ..slow() }, Reason::Stranger),
        (RunningExecution { holder_start: Some(at(-4)), ..slow() }, Reason::Stranger),
        (RunningExecution { backend_pid: None, ..slow() }, Reason::Stranger),
        (RunningExecution { backend_start: None, ..slow() }, Reason::Stranger),
        (RunningExecution { holder_start: None, ..slow() }, Reason::Hidden),
        (
            RunningExecution { holder_pid: None, holder_start: None, backend_pid: None, ..slow() },
            Reason::Hidden,
        ),
    ] {
        assert_eq!(step_of(running.clone(), true), Step::Leave(reason), "{running:?}");
    }
}

#[test]
fn a_selection_includes_only_matching_executions() {
    let taken =
        |running: RunningExecution, select: Selection| planned(running, select, false).rows.len() == 1;
    assert!(taken(orphan(), Selection::Orphans) && !taken(slow(), Selection::Orphans));
    let young = RunningExecution { run_seconds: Some(1_799.0), ..orphan() };
    assert!(taken(slow(), Selection::Longer(None)) && !taken(young.clone(), Selection::Longer(None)));
    assert!(taken(young.clone(), Selection::Longer(Some(60.0))));
    assert!(!taken(young, Selection::Longer(Some(1_800.0))));
    let no_start = RunningExecution { run_seconds: None, ..slow() };
    assert!(!taken(no_start, Selection::Longer(Some(0.0))));
    let no_limit = RunningExecution { timeout_seconds: None, ..slow() };
    assert!(!taken(no_limit, Selection::Longer(None)));
    assert!(
        taken(slow(), Selection::Executions(vec![1, 7])) && !taken(slow(), Selection::Executions(vec![1]))
    );
    let request = Request { select: Selection::Orphans, task: Some("other".to_owned()), terminate: false };
    assert_eq!(RecoveryPlan::of("s", at(0), 30.0, &[orphan()], &request).rows.len(), 0);
    let others = planned(slow(), Selection::Orphans, false).others;
    assert_eq!(others, Others { slow: 1, ..Others::default() });
}

#[test]
fn the_effect_text_describes_the_planned_step() {
    let effect = |running: RunningExecution, terminate: bool| {
        planned(running, Selection::Executions(vec![7]), terminate).rows[0].effect(30.0)
    };
    assert_eq!(effect(orphan(), false), "due again in 20s; attempt 2 of 3 failed");
    assert_eq!(
        effect(slow(), true),
        "the worker's session 4312 will be terminated; due again in 20s; attempt 2 of 3 failed"
    );
    let at_once = RunningExecution { retry_seconds: Some(0.0), is_enabled: false, ..orphan() };
    assert_eq!(effect(at_once, false), "due again at once; attempt 2 of 3 failed; the task is disabled");
    let last = RunningExecution { attempt: 3, ..orphan() };
    assert_eq!(
        effect(last.clone(), false),
        "failed for good after attempt 3 of 3; it runs next by its schedule"
    );
    let once = RunningExecution { is_scheduled: false, ..last };
    assert_eq!(effect(once, false), "failed for good after attempt 3 of 3; it is not run again");
    assert_eq!(
        effect(slow(), false),
        "skipped: pid 4312 holds its key (--terminate terminates that session)"
    );
    let settling = RunningExecution { state: RunState::Settling, ..orphan() };
    assert_eq!(
        effect(settling, true),
        "skipped: its key is free, but its last heartbeat, or the server's start, is less than 30s ago"
    );
}

#[test]
fn a_plan_can_be_written_and_read_back() {
    let plan = planned(slow(), Selection::Longer(None), true);
    assert_eq!(plan.ended_pids(), [4312]);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<RecoveryPlan>(&text).unwrap(), plan);
}

#[test]
fn every_word_of_the_server_is_known_again() {
    for outcome in [
        RecoveryOutcome::Recovered,
        RecoveryOutcome::GaveUp,
        RecoveryOutcome::Changed,
        RecoveryOutcome::HeldByUs,
        RecoveryOutcome::NotSlow,
    ] {
        assert_eq!(RecoveryOutcome::parse(outcome.as_str()), Some(outcome));
        assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
    }
    assert_eq!(RecoveryOutcome::parse("asked"), None);
    assert!(RecoveryOutcome::NotRunning.is_settled() && !RecoveryOutcome::NotRunning.is_recovered());
}
