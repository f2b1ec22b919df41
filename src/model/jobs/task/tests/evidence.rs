use super::*;

type Change = fn(&mut crate::model::snapshot::Server);

/// locktop's own tables: the server's timestamps count from the first snapshot on, as in `recover` and the views.
#[test]
fn in_own_tables_a_key_is_free_since_the_last_sign_of_life() {
    let orphan = JobState::Orphan;
    let settling = JobState::Settling;
    let cases: [(&str, Option<f64>, Change, JobState); 6] = [
        ("began long ago", None, |_| {}, orphan),
        ("last heartbeat 29 s ago", Some(29.0), |_| {}, settling),
        ("last heartbeat 31 s ago", Some(31.0), |_| {}, orphan),
        ("the server started 10 s ago", None, |server| server.started_at = Some(at(-10.0)), settling),
        ("the grace of the database", Some(29.0), |server| server.orphan_grace = Some(20.0), orphan),
        ("a longer one", Some(31.0), |server| server.orphan_grace = Some(60.0), settling),
    ];
    for (name, beat, change, expected) in cases {
        let mut b = stage(0.0, false);
        b.executions[0].heartbeat_at = beat.map(|ago| at(-ago));
        let snapshot = with_server(b.snapshot(), change);
        let row = TaskWatch::default().evaluate(&snapshot, &Thresholds::default()).rows[0].clone();
        assert_eq!(row.state, expected, "{name}");
        assert_eq!(row.orphan_in.is_some(), expected == settling, "{name}");
    }
}

/// Executions of the published tables, `(id, worker, lock_id, since)`, and key holders, `(pid, who, query, number)`.
fn published(
    now: f64,
    runs: &[(i64, &str, Option<i64>, f64)],
    held: &[(i32, &str, &str, i64)],
    change: impl Fn(&mut TaskTables),
) -> Snapshot {
    let mut b = Builder { now, ..Builder::default() };
    b.task(2, "report", "sql", 1800.0, 100.0 + now).max_attempts = None;
    for (id, worker, lock_id, since) in runs {
        let row = b.execution(2, worker, "running", since + now, None);
        (row.id, row.lock_id, row.heartbeat_at, row.backend_start) = (*id, *lock_id, None, None);
    }
    for (pid, who, query, number) in held {
        b.session(*pid, who, State::Idle, 5.0, query);
        b.lock(*pid, advisory(*number), LockMode::Exclusive, None);
    }
    let mut snapshot = b.snapshot();
    let set = snapshot.task_sets[0].clone();
    let mut tables = TaskTables { own_keys: false, ..TaskTables::clone(&set.tables) };
    change(&mut tables);
    snapshot.task_sets = Arc::new(vec![TaskSet::new(Arc::new(tables), set.tasks, set.executions)]);
    snapshot
}

fn states(snapshot: &Snapshot) -> Vec<&'static str> {
    let rows = TaskWatch::default().evaluate(snapshot, &Thresholds::default()).rows;
    rows.iter().map(|row| row.state.as_str()).collect()
}

/// The tables as printed in the article: `lock_id` is the id of the task.
#[test]
fn in_published_tables_a_free_key_is_proof_and_a_held_one_needs_a_link() {
    let one = [(10, "worker-001", Some(2), 60.0)];
    let late = [(10, "worker-001", Some(2), 3000.0)];
    let both = [(10, "worker-001", Some(2), 3000.0), (11, "worker-002", Some(2), 60.0)];
    let acquires = "SELECT try_acquire_task_lock(2, 'worker-001')";
    for (name, runs, held, expected) in [
        (
            "its worker holds it, by its application",
            &one[..],
            &[(7, "app@worker-001", "", 2)][..],
            vec!["running"],
        ),
        ("its worker holds it, by its statement", &one, &[(7, "app@psql", acquires, 2)], vec!["running"]),
        ("past its limit", &late, &[(7, "app@worker-001", "", 2)], vec!["slow"]),
        ("killed", &one, &[], vec!["orphan"]),
        ("killed past its limit", &late, &[], vec!["orphan"]),
        ("an unrelated session holds the number", &one, &[(9, "app@psql", "SELECT 1", 2)], vec!["running?"]),
        ("a worker of a longer name", &one, &[(9, "app@worker-0012", "", 2)], vec!["running?"]),
        ("the same past its limit", &late, &[(9, "app@psql", "SELECT 1", 2)], vec!["slow?"]),
        ("another number is held", &one, &[(9, "app@worker-001", acquires, 3)], vec!["orphan"]),
        (
            "a left-over row, the newest holds",
            &both,
            &[(7, "app@worker-002", "", 2)],
            vec!["running", "leftover"],
        ),
        (
            "a left-over row, the holder is unknown",
            &both,
            &[(7, "app@psql", "", 2)],
            vec!["running?", "leftover"],
        ),
        ("the older one's worker holds", &both, &[(7, "app@worker-001", "", 2)], vec!["leftover", "slow"]),
        ("all killed", &both, &[], vec!["orphan", "orphan"]),
    ] {
        assert_eq!(states(&published(0.0, runs, held, |_| {})), expected, "{name}");
    }
}

#[test]
fn whether_the_number_is_the_key_is_proved_or_a_guess() {
    let run = |lock_id| [(10, "w-1", lock_id, 3000.0)];
    let function = |tables: &mut TaskTables| tables.has_function = true;
    let by_config = |rule: KeyRule| move |tables: &mut TaskTables| tables.key_rule = rule.clone();
    let state = |lock_id, change: &dyn Fn(&mut TaskTables)| {
        states(&published(0.0, &run(lock_id), &[(9, "app@psql", "", 7777)], change))[0]
    };
    assert_eq!(state(Some(2), &|_| {}), "orphan", "lock_id is the id of its task");
    assert_eq!(state(Some(5), &|_| {}), "orphan?", "it is another number");
    assert_eq!(state(None, &|_| {}), "unknown", "no number at all");
    assert_eq!(state(None, &function), "orphan", "a function locks the id");
    assert_eq!(state(Some(5), &function), "orphan?", "what is stored is another number");
    assert_eq!(state(None, &by_config(KeyRule::Id)), "orphan");
    assert_eq!(state(Some(5), &by_config(KeyRule::LockId)), "orphan");
    assert_eq!(state(None, &by_config(KeyRule::LockId)), "unknown");
    assert_eq!(state(Some(7777), &by_config(KeyRule::LockId)), "slow?", "the key is held");
    assert_eq!(state(Some(7777), &by_config(KeyRule::Id)), "orphan", "the id is what counts");
    assert_eq!(
        state(Some(2), &by_config(KeyRule::Expression("x".into()))),
        "unknown",
        "the expression returned no key"
    );
}

#[test]
fn a_session_that_held_the_key_and_was_seen_to_end_is_a_proof() {
    let run = [(10, "w-1", Some(5), 3000.0)];
    let at = |now, held: &[(i32, &str, &str, i64)]| published(now, &run, held, |_| {});
    let mut watch = TaskWatch::default();
    let mut poll = |snapshot: &Snapshot| state(&mut watch, snapshot).as_str();
    let holder = [(7, "app@psql", "", 5)];
    assert_eq!(poll(&at(0.0, &holder)), "slow?");
    assert_eq!(poll(&at(1.0, &[])), "settling", "it has not been free for long");
    assert_eq!(poll(&at(30.9, &[])), "settling");
    assert_eq!(poll(&at(31.0, &[])), "orphan");
    assert_eq!(poll(&at(32.0, &holder)), "slow?", "held again");
    // A key unlocked by a session that still exists may never have been the worker's.
    let other = [(7, "app@psql", "", 6)];
    assert_eq!(poll(&at(40.0, &other)), "settling");
    assert_eq!(poll(&at(70.0, &other)), "orphan?");
}

#[test]
fn a_session_linked_to_the_worker_stays_linked_while_it_holds_the_key() {
    let run = [(10, "worker-001", Some(2), 60.0)];
    let mut watch = TaskWatch::default();
    let mut poll =
        |now, query: &str| state(&mut watch, &published(now, &run, &[(7, "app@psql", query, 2)], |_| {}));
    assert_eq!(poll(0.0, "SELECT try_acquire_task_lock(2, 'worker-001')"), JobState::Running);
    assert_eq!(poll(1.0, "SELECT something_else()"), JobState::Running);
    assert_eq!(
        state(&mut TaskWatch::default(), &published(1.0, &run, &[(7, "app@psql", "SELECT 1", 2)], |_| {})),
        JobState::MaybeRunning
    );
}

#[test]
fn failed_tasks_without_a_retry_and_failure_streaks_are_reported() {
    let board = |statuses: &[&str], next: Option<f64>| {
        let mut b = Builder::default();
        b.task(1, "sync", "sql", 600.0, 0.0).next_run_at = next.map(at);
        for (place, status) in statuses.iter().enumerate() {
            let row = b.execution(1, "worker-1", status, 100.0, None);
            let error = match *status {
                "released" => {
                    "given back by worker w-1, which was shut down; it does not count as an attempt"
                }
                _ => &format!("no {place}"),
            };
            (row.id, row.error) = (90 - i64::try_from(place).unwrap(), Some(error.into()));
            match *status {
                "released" => row.status = Some("failed".into()),
                "recovered" => (row.status, row.recovered_by) = (Some("failed".into()), Some("w-2".into())),
                "ended" => {
                    let error = format!("{}locktop (role ops)", crate::model::task::CLOSED[0]);
                    (row.status, row.error) = (Some("failed".into()), Some(error.into()));
                }
                _ => {}
            }
        }
        let snapshot = b.snapshot();
        let row = TaskWatch::default().evaluate(&snapshot, &Thresholds::default()).rows[0].clone();
        let error = row.last_failed(&snapshot).and_then(|execution| execution.error.clone());
        (row.state.as_str(), row.streak.length, row.streak.is_open, error.map(|error| error.to_string()))
    };
    let first = Some("no 0".to_owned());
    assert_eq!(board(&["failed"], None), ("failed", 1, true, first.clone()));
    assert_eq!(board(&["failed", "completed", "failed"], None), ("failed", 1, false, first.clone()));
    assert_eq!(board(&["completed", "failed"], None), ("idle", 0, false, None));
    assert_eq!(board(&["failed", "failed", "failed"], Some(9.0)), ("idle", 3, true, first.clone()));
    // A stopped worker is not a failure of its task.
    assert_eq!(board(&["released", "released", "released"], Some(9.0)), ("idle", 0, true, None));
    assert_eq!(
        board(&["failed", "released", "failed", "completed"], Some(9.0)),
        ("idle", 2, false, first.clone())
    );
    // Three deploys, with tables that have no column for it.
    assert_eq!(board(&["ended", "ended", "ended", "completed"], Some(9.0)).1, 0);
    assert_eq!(board(&["recovered", "recovered", "completed"], Some(9.0)), ("idle", 0, false, first.clone()));
    assert_eq!(board(&["recovered", "recovered"], None), ("failed", 0, true, first), "still given up");
}

#[test]
fn a_worker_in_an_open_transaction_works() {
    let board = |own: bool, has_function: bool, due: f64, in_transaction: bool| {
        let mut b = Builder::default();
        b.task(2, "report", "sql", 600.0, 0.0).next_run_at = Some(at(due));
        let key = if own { OWN + 2 } else { 2 };
        let session = b.session(7, "app@psql", State::Active, 5.0, "DO $$ … $$");
        session.xact_start = in_transaction.then(|| at(-5.0));
        b.lock(7, advisory(key), LockMode::Exclusive, None);
        let mut snapshot = b.snapshot();
        let set = snapshot.task_sets[0].clone();
        let tables = TaskTables { own_keys: own, has_function, ..TaskTables::clone(&set.tables) };
        snapshot.task_sets = Arc::new(vec![TaskSet::new(Arc::new(tables), set.tasks, set.executions)]);
        let row = TaskWatch::default().evaluate(&snapshot, &Thresholds::default()).rows[0].clone();
        (row.state.as_str(), row.state.certain(), row.holder)
    };
    assert_eq!(board(true, false, -9000.0, true), ("running (uncommitted)", "running", Some(7)));
    assert_eq!(board(false, true, -9000.0, true), ("running (uncommitted)", "running", Some(7)));
    assert_eq!(board(false, false, -9000.0, true), ("running? (uncommitted)", "unknown", Some(7)));
    assert_eq!(
        board(false, true, 9000.0, true),
        ("idle", "idle", None),
        "it is not due: the number belongs to another session"
    );
    assert_eq!(board(true, false, -9000.0, false), ("overdue", "overdue", Some(7)));
}
