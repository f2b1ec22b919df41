use std::sync::Arc;

use super::board::of_schedule;
use super::*;
use crate::model::adapter::{Evidence, Job};
use crate::model::backend::State;
use crate::model::judge::{Facts, Holder, KeyProof, Sign, judge_run};
use crate::model::lock::LockMode;
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::thresholds::Thresholds;
use crate::model::{Text, Timestamp};
use crate::sample::{self, Builder, advisory, at};

mod evidence;

const OWN: i64 = 0x4C54 << 48;

#[test]
fn own_keys_are_recognized_by_their_namespace() {
    for (number, key) in [
        (OWN, TaskKey::Own(0)),
        (OWN + 17, TaskKey::Own(17)),
        (OWN + LARGEST_ID, TaskKey::Own(LARGEST_ID)),
        (OWN + LARGEST_ID + 1, TaskKey::Raw(OWN + LARGEST_ID + 1)),
        (OWN - 1, TaskKey::Raw(OWN - 1)),
        (1, TaskKey::Raw(1)),
        (-1, TaskKey::Raw(-1)),
        (i64::MIN, TaskKey::Raw(i64::MIN)),
    ] {
        assert_eq!(TaskKey::of(number), key, "{number:x}");
        assert_eq!(key.number(), number);
        assert_eq!(key.tag(5).advisory_key(), Some(LockKey::Bigint(number)));
    }
    assert_eq!(TaskKey::own(-1), None);
    assert_eq!(TaskKey::own(LARGEST_ID + 1), None);
}

#[test]
fn an_execution_is_judged_by_its_key_and_its_age() {
    use Holder::{OtherRun, OtherSession, Unlinked, Worker};
    use JobState::{
        LeftOver, MaybeOrphan, MaybeRunning, MaybeSlow, Orphan, Running, Settling, Slow, Unknown,
    };
    let free = |seconds: f64| Sign::Free { since: Some(at(-seconds)), proof: Some(KeyProof::Namespace) };
    let perhaps = |seconds: f64| Sign::Free { since: Some(at(-seconds)), proof: None };
    let held = |holder| Sign::Held(Some(7), holder);
    for (standby, key, age, state) in [
        (false, held(Worker), Some(10.0), Running),
        (false, held(Worker), Some(100.0), Running),
        (false, held(Worker), Some(100.1), Slow),
        (false, held(Worker), None, Running),
        (false, held(Unlinked), Some(1.0), MaybeRunning),
        (false, held(Unlinked), Some(101.0), MaybeSlow),
        (false, held(OtherRun), Some(1.0), LeftOver),
        (false, held(OtherRun), Some(500.0), LeftOver),
        (false, held(OtherSession), Some(500.0), Unknown),
        (false, Sign::Unseen, Some(500.0), Unknown),
        (false, free(29.9), Some(500.0), Settling),
        (false, free(30.0), Some(500.0), Orphan),
        (false, free(30.0), None, Orphan),
        (false, free(0.0), Some(0.5), Running),
        (false, perhaps(29.9), Some(500.0), Settling),
        (false, perhaps(30.0), Some(50.0), MaybeOrphan),
        (false, perhaps(1e8), Some(500.0), MaybeOrphan),
        (true, free(1e8), Some(500.0), Unknown),
        (true, held(Worker), Some(500.0), Unknown),
    ] {
        let (now, young) = (at(0.0), Some(2.0));
        let facts =
            Facts { now, read_at: now, in_recovery: standby, key, grace: 30.0, young, ..Facts::default() };
        let job = Job { started_at: age.map(|age: f64| at(-age)), limit: Some(100.0), ..Job::default() };
        let judged = judge_run(&Evidence { has_key: true, ..Evidence::default() }, &job, &facts);
        assert_eq!(judged.shown(JobState::Settling), state, "{facts:?}");
    }
}

#[test]
fn a_schedule_is_judged_by_the_clock() {
    use JobState::{Disabled, Due, GivenUp, Idle, Overdue, Running};
    for (enabled, failed, running) in [(Some(true), true, false), (None, true, false)] {
        let task = Schedule { enabled, ..Schedule::default() };
        assert_eq!(
            of_schedule(&task, (running, failed), at(0.0), 60.0),
            GivenUp,
            "no worker starts it again"
        );
        let again = Schedule { enabled, next_run_at: Some(at(5.0)), ..Schedule::default() };
        assert_eq!(of_schedule(&again, (running, failed), at(0.0), 60.0), Idle, "it will be retried");
    }
    for (enabled, due, running, state) in [
        (Some(true), Some(-1.0), false, Idle),
        (Some(true), Some(0.0), false, Due),
        (Some(true), Some(59.0), false, Due),
        (Some(true), Some(60.0), false, Overdue),
        (None, Some(60.0), false, Overdue),
        (None, None, false, Idle),
        (Some(false), Some(60.0), false, Disabled),
        (Some(false), None, true, Running),
        (Some(true), Some(60.0), true, Running),
    ] {
        let next_run_at = due.map(|due: f64| at(-due));
        let task = Schedule { enabled, next_run_at, ..Schedule::default() };
        assert_eq!(
            of_schedule(&task, (running, false), at(0.0), 60.0),
            state,
            "{enabled:?} {due:?} {running}"
        );
    }
}

/// A task that runs in session 7, with or without its key.
fn stage(now: f64, held: bool) -> Builder {
    let mut b = Builder { now, ..Builder::default() };
    b.task(1, "sync", "sql", 600.0, 100.0 + now);
    b.execution(1, "worker-1", "running", 100.0 + now, Some(7)).heartbeat_at = None;
    b.session(7, "jobs@worker-1", State::Idle, 5.0, "SELECT 1");
    if held {
        b.lock(7, advisory(OWN + 1), LockMode::Exclusive, None);
    }
    b
}

fn state(watch: &mut TaskWatch, snapshot: &Snapshot) -> JobState {
    watch.evaluate(snapshot, &Thresholds::default()).rows[0].state
}

fn with_server(mut snapshot: Snapshot, change: impl Fn(&mut crate::model::snapshot::Server)) -> Snapshot {
    let mut server = snapshot.server().unwrap().clone();
    change(&mut server);
    snapshot.server = Section::fresh(vec![server], snapshot.taken_at);
    snapshot
}

#[test]
fn a_task_is_unknown_if_its_rows_or_locks_were_not_read_in_this_poll() {
    let mut watch = TaskWatch::default();
    let mut without_locks = stage(40.0, false).snapshot();
    without_locks.locks = without_locks.locks.stale("no".into());
    assert_eq!(state(&mut watch, &without_locks), JobState::Unknown);
    let mut without_log = stage(80.0, false).snapshot();
    let set = without_log.task_sets[0].clone();
    let stale = set.executions.stale("no".into());
    without_log.task_sets = Arc::new(vec![TaskSet::new(set.tables, set.tasks, stale)]);
    assert_eq!(state(&mut watch, &without_log), JobState::Unknown);
}

#[test]
fn on_a_standby_nothing_is_an_orphan() {
    let mut watch = TaskWatch::default();
    let standby = |now| with_server(stage(now, false).snapshot(), |server| server.in_recovery = true);
    let _ = state(&mut watch, &standby(0.0));
    assert_eq!(state(&mut watch, &standby(500.0)), JobState::Unknown);
}

#[test]
fn a_key_that_is_held_by_another_session_than_the_log_names_is_unknown() {
    let mut b = stage(0.0, false);
    b.session(8, "jobs@worker-2", State::Idle, 5.0, "SELECT 1");
    b.lock(8, advisory(OWN + 1), LockMode::Exclusive, None);
    assert_eq!(state(&mut TaskWatch::default(), &b.snapshot()), JobState::Unknown);
}

/// A session that holds the key of task 1, which does not run.
fn leak(now: f64, session: State) -> Builder {
    let mut b = Builder { now, ..Builder::default() };
    b.task(1, "sync", "sql", 600.0, -100.0);
    b.session(7, "jobs@worker-1", session, 5.0, "SELECT 1");
    b.lock(7, advisory(OWN + 1), LockMode::Exclusive, None);
    b
}

#[test]
fn a_key_is_leaked_if_one_idle_session_holds_it_in_two_snapshots() {
    let mut watch = TaskWatch::default();
    let mut states = |now, session| state(&mut watch, &leak(now, session).snapshot());
    assert_eq!(states(0.0, State::Idle), JobState::Idle);
    assert_eq!(states(1.0, State::Idle), JobState::Leaked);
    assert_eq!(
        states(2.0, State::IdleInTransaction),
        JobState::Uncommitted,
        "what its transaction writes is not visible yet"
    );
    assert_eq!(states(3.0, State::Idle), JobState::Idle, "two snapshots are needed again");
    let board = watch.evaluate(&leak(4.0, State::Idle).snapshot(), &Thresholds::default());
    assert_eq!((board.rows[0].holder, board.rows[0].since), (Some(7), Some(at(3.0))));
}

#[test]
fn a_leaked_key_of_no_task_has_a_row_of_its_own() {
    let mut watch = TaskWatch::default();
    let snapshot = || {
        let mut b = leak(0.0, State::Idle);
        b.lock(7, advisory(OWN + 99), LockMode::Exclusive, None);
        b.snapshot()
    };
    let _ = watch.evaluate(&snapshot(), &Thresholds::default());
    let board = watch.evaluate(&snapshot(), &Thresholds::default());
    let ids: Vec<(i64, Option<usize>)> = board.rows.iter().map(|row| (row.task.id, row.schedule)).collect();
    assert_eq!(ids, [(1, Some(0)), (99, None)]);
    assert_eq!(board.count(JobState::Leaked), 2);
    assert_eq!(name_of(&snapshot().task_sets, OWN + 99), None, "no name without a task");
}

/// The sets of a snapshot with raw ids, as in the recipe.
fn raw(mut snapshot: Snapshot, number: Option<i64>) -> Snapshot {
    let set = snapshot.task_sets[0].clone();
    let tables = TaskTables { own_keys: false, ..TaskTables::clone(&set.tables) };
    let rows = set.executions.last_rows().iter().map(|row| Execution {
        lock_id: number,
        backend_pid: None,
        backend_start: None,
        ..row.clone()
    });
    let executions = Section::fresh(rows.collect(), snapshot.taken_at);
    snapshot.task_sets = Arc::new(vec![TaskSet::new(Arc::new(tables), set.tasks, executions)]);
    snapshot
}

#[test]
fn the_name_of_a_raw_key_is_a_guess() {
    let mut held = stage(0.0, false);
    held.lock(7, advisory(1), LockMode::Exclusive, None);
    let held = raw(held.snapshot(), Some(1));
    assert_eq!(name_of(&held.task_sets, 1).unwrap().to_string(), "sync?");
}

#[test]
fn a_key_shared_by_two_tables_is_still_proof_while_it_is_free() {
    let twice = |mut b: Builder, logged: Option<i32>| {
        let now = b.now;
        b.executions.iter_mut().for_each(|execution| execution.backend_pid = logged);
        let mut snapshot = b.snapshot();
        let set = snapshot.task_sets[0].clone();
        let tables = TaskTables {
            table: 9,
            schedules: "jobs.scheduled_tasks".into(),
            ..TaskTables::clone(&set.tables)
        };
        let other = TaskSet::new(Arc::new(tables), set.tasks.clone(), Section::fresh(Vec::new(), at(now)));
        snapshot.task_sets = Arc::new(vec![set, other]);
        snapshot
    };
    let mut watch = TaskWatch::default();
    let free = |now| twice(stage(now, false), Some(7));
    let _ = state(&mut watch, &free(0.0));
    assert_eq!(state(&mut watch, &free(100.0)), JobState::Orphan);
    for (logged, is) in
        [(Some(7), JobState::Running), (Some(8), JobState::Unknown), (None, JobState::Unknown)]
    {
        assert_eq!(state(&mut watch, &twice(stage(0.0, true), logged)), is, "held by 7, logged {logged:?}");
    }
    let sets = free(0.0).task_sets;
    assert_eq!(also_of(&sets, &sets[0], TaskKey::Own(1)).map(|name| &**name), Some("jobs.scheduled_tasks"));
    assert_eq!(also_of(&sets[..1], &sets[0], TaskKey::Own(1)), None);
    assert!(name_of(&sets, OWN + 1).unwrap().uncertain);
    assert_eq!(name_of(&stage(0.0, false).snapshot().task_sets, OWN + 1).unwrap().to_string(), "sync");
}

#[test]
fn every_running_row_of_a_task_is_seen_the_newest_first() {
    let mut b = stage(0.0, true);
    b.execution(1, "worker-2", "running", 10.0, None);
    b.execution(77, "worker-3", "running", 10.0, None);
    let board = TaskWatch::default().evaluate(&b.snapshot(), &Thresholds::default());
    let rows: Vec<_> = board.rows.iter().map(|row| (row.task.id, row.again, row.schedule)).collect();
    assert_eq!(rows, [(1, None, Some(0)), (1, Some(900), Some(0)), (77, None, None)]);
}

#[test]
fn a_row_of_nulls_is_a_row() {
    let null = Schedule { id: 1, ..Schedule::default() };
    let running: Text = "running".into();
    let execution = Execution { id: 1, task_id: 1, status: Some(running), ..Execution::default() };
    let at = Timestamp::from_timestamp(0, 0).unwrap();
    let tables = Arc::new(TaskTables { table: 1, ..TaskTables::default() });
    let section = Section::fresh(vec![null], at);
    let set = TaskSet::new(tables, section, Section::fresh(vec![execution, Execution::default()], at));
    let mut snapshot = sample::Builder::default().snapshot();
    snapshot.task_sets = Arc::new(vec![set]);
    let board = TaskWatch::default().evaluate(&snapshot, &Thresholds::default());
    assert_eq!(board.rows.len(), 1);
    assert_eq!(board.rows[0].state, JobState::Unknown);
    assert_eq!(&*board.rows[0].name(&snapshot), "task 1");
}
