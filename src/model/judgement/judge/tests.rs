use chrono::TimeDelta;

use super::*;

const NOW: i64 = 1_800_000_000;

fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(NOW, 0).unwrap() - TimeDelta::seconds(seconds)
}

fn evidence() -> Evidence {
    Evidence {
        has_key: true,
        absent_is_lost: true,
        has_session: true,
        has_presence: true,
        ..Evidence::default()
    }
}

fn seen() -> Facts<'static> {
    Facts {
        now: ago(0),
        read_at: ago(0),
        workers_at: ago(0),
        has_workers: true,
        beat_limit: Some(60.0),
        age_limit: Some(3600.0),
        grace: 30.0,
        overdue: 60.0,
        ..Facts::default()
    }
}

fn free(seconds: i64) -> Sign {
    Sign::Free { since: Some(ago(seconds)), proof: Some(KeyProof::Config) }
}

fn held(pid: Option<i32>) -> Sign {
    Sign::Held(pid, Holder::Worker)
}

/// The sign of a session.
fn session(exists: bool) -> Sign {
    if exists { held(Some(7)) } else { Sign::Free { since: None, proof: Some(KeyProof::Config) } }
}

fn job(state: &str) -> Job {
    Job { id: "1".into(), state: state.into(), started_at: Some(ago(10)), ..Job::default() }
}

fn state_and_proof(judged: Judged) -> (&'static str, &'static str) {
    (judged.state.as_str(), judged.proof.as_str())
}

/// A description, the row, the other facts, and the expected state and proof.
type Case<'a> = (&'a str, Job, Facts<'a>, (&'a str, &'a str));

fn assert_judged(cases: Vec<Case<'_>>) {
    for (what, job, seen, expected) in cases {
        assert_eq!(state_and_proof(judge(&evidence(), &job, &seen)), expected, "{what}");
    }
}

#[test]
fn running_jobs_are_judged_by_lock_or_session_first() {
    let fresh = Worker { id: "w".into(), beat_at: Some(ago(5)), ..Worker::default() };
    let of = |worker: &str| Job { worker: Some(worker.into()), ..job("running") };
    assert_judged(vec![
        ("its key is held", job("running"), Facts { key: held(Some(7)), ..seen() }, ("running", "lock")),
        ("its key is free", job("running"), Facts { key: free(30), ..seen() }, ("orphan", "lock")),
        ("for less than the grace", job("running"), Facts { key: free(29), ..seen() }, ("unknown", "lock")),
        (
            "and its worker is on no list",
            Job { started_at: Some(ago(900)), ..of("ended") },
            Facts { key: free(0), ..seen() },
            ("orphan", "lock"),
        ),
        (
            "and its worker is on the list",
            Job { started_at: Some(ago(900)), ..of("w") },
            Facts { key: free(0), worker: Some(&fresh), ..seen() },
            ("unknown", "lock"),
        ),
        (
            "and its worker may not be listed yet",
            Job { started_at: Some(ago(9)), ..of("new") },
            Facts { key: free(0), ..seen() },
            ("unknown", "lock"),
        ),
        (
            "on a standby",
            job("running"),
            Facts { key: free(90), in_recovery: true, ..seen() },
            ("unknown", "none"),
        ),
        (
            "held on a standby",
            job("running"),
            Facts { key: held(None), in_recovery: true, ..seen() },
            ("unknown", "none"),
        ),
        (
            "a key counts before a heartbeat",
            of("w"),
            Facts { key: free(30), worker: Some(&fresh), ..seen() },
            ("orphan", "lock"),
        ),
        (
            "its session exists",
            job("running"),
            Facts { session: session(true), ..seen() },
            ("running", "session"),
        ),
        (
            "its session ended",
            job("running"),
            Facts { session: session(false), ..seen() },
            ("orphan", "session"),
        ),
        (
            "the same on a standby",
            job("running"),
            Facts { session: session(false), in_recovery: true, ..seen() },
            ("unknown", "none"),
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn running_jobs_are_then_judged_by_worker_or_their_own_row() {
    let worker = |beat: Option<i64>| Worker { id: "w".into(), beat_at: beat.map(ago), ..Worker::default() };
    let (fresh, old, silent) = (worker(Some(5)), worker(Some(61)), worker(None));
    let stopped = Worker { stopped_at: Some(ago(1)), ..worker(Some(5)) };
    let patient = Worker { beat_limit: Some(600.0), ..worker(Some(61)) };
    let of = |worker: &str| Job { worker: Some(worker.into()), ..job("running") };
    assert_judged(vec![
        (
            "its worker has a recent heartbeat",
            of("w"),
            Facts { worker: Some(&fresh), ..seen() },
            ("running", "heartbeat"),
        ),
        ("its worker is silent", of("w"), Facts { worker: Some(&old), ..seen() }, ("lost", "heartbeat")),
        (
            "also on a standby",
            of("w"),
            Facts { worker: Some(&old), in_recovery: true, ..seen() },
            ("lost", "heartbeat"),
        ),
        (
            "within its own limit",
            of("w"),
            Facts { worker: Some(&patient), ..seen() },
            ("running", "heartbeat"),
        ),
        (
            "its worker has stopped",
            of("w"),
            Facts { worker: Some(&stopped), ..seen() },
            ("lost", "heartbeat"),
        ),
        (
            "its worker reports nothing",
            of("w"),
            Facts { worker: Some(&silent), ..seen() },
            ("unknown", "none"),
        ),
        (
            "its worker's key is held",
            of("w"),
            Facts { worker: Some(&silent), worker_key: held(None), ..seen() },
            ("running", "lock"),
        ),
        (
            "its worker's key is free",
            of("w"),
            Facts { worker: Some(&silent), worker_key: free(31), ..seen() },
            ("orphan", "lock"),
        ),
        ("its worker has no row", of("w"), seen(), ("lost", "absent")),
        ("not all workers are known", of("w"), Facts { has_workers: false, ..seen() }, ("unknown", "none")),
        ("it is not held", of(""), Facts { has_workers: false, ..seen() }, ("lost", "absent")),
        (
            "its own row has a heartbeat",
            Job { beat_at: Some(ago(5)), ..job("running") },
            seen(),
            ("running", "heartbeat"),
        ),
        (
            "its own heartbeat is old",
            Job { beat_at: Some(ago(61)), ..job("running") },
            seen(),
            ("lost", "heartbeat"),
        ),
        (
            "its lease lasts",
            Job { lease_until: Some(ago(-5)), ..job("running") },
            seen(),
            ("running", "lease"),
        ),
        ("its lease is over", Job { lease_until: Some(ago(0)), ..job("running") }, seen(), ("lost", "lease")),
        ("nothing is known", job("running"), seen(), ("unknown", "none")),
        (
            "no worker is connected",
            job("running"),
            Facts { no_session: Some(ago(30)), ..seen() },
            ("lost", "presence"),
        ),
        (
            "for less than the grace",
            job("running"),
            Facts { no_session: Some(ago(29)), ..seen() },
            ("unknown", "presence"),
        ),
        (
            "and its lease lasts",
            Job { lease_until: Some(ago(-5)), ..job("running") },
            Facts { no_session: Some(ago(30)), ..seen() },
            ("running", "lease"),
        ),
        (
            "and it is old",
            Job { started_at: Some(ago(3601)), ..job("running") },
            Facts { no_session: Some(ago(30)), ..seen() },
            ("lost", "presence"),
        ),
        ("an old job", Job { started_at: Some(ago(3601)), ..job("running") }, seen(), ("late", "age")),
        (
            "a limit of its own",
            Job { limit: Some(5.0), ..job("running") },
            Facts { session: session(true), ..seen() },
            ("slow", "session"),
        ),
    ]);
}

#[test]
fn evidence_that_an_adapter_does_not_declare_proves_nothing() {
    let silent = Evidence::default();
    let bare = Facts { beat_limit: None, age_limit: None, ..seen() };
    let free = Facts { key: free(90), session: session(false), no_session: Some(ago(90)), ..bare };
    assert_eq!(state_and_proof(judge(&silent, &job("running"), &free)), ("unknown", "none"));
    let of = Job { worker: Some("w".into()), beat_at: Some(ago(9000)), ..job("running") };
    assert_eq!(
        state_and_proof(judge(&silent, &of, &bare)),
        ("unknown", "none"),
        "without a worker, and without a limit"
    );
}

#[test]
fn waiting_jobs_are_judged_by_their_due_time() {
    let due = |state: &str, seconds: i64| Job { due_at: Some(ago(seconds)), ..job(state) };
    for (job, is_paused, expected) in [
        (due("due", 5), false, "due"),
        (due("due", 61), false, "overdue"),
        (due("due", 61), true, "paused"),
        (due("due", -5), false, "scheduled"),
        (due("scheduled", -5), false, "scheduled"),
        (due("scheduled", -5), true, "scheduled"),
        (due("scheduled", 5), false, "due"),
        (due("scheduled", 90), false, "overdue"),
        (job("scheduled"), false, "scheduled"),
        (due("retry", 5), false, "retry"),
        (due("retry", -500), false, "retry"),
        (due("retry", 500), false, "overdue"),
        (job("due"), false, "due"),
        (job("blocked"), false, "blocked"),
        (job("failed"), false, "failed"),
        (job("done"), false, "done"),
        (job("something else"), false, "due"),
    ] {
        let judged = judge(&evidence(), &job, &Facts { is_paused, ..seen() });
        assert_eq!(state_and_proof(judged), (expected, "none"), "{} {:?}", job.state, job.due_at);
    }
}

#[test]
fn old_rows_are_judged_by_the_time_they_were_read() {
    let worker = Worker { id: "w".into(), beat_at: Some(ago(100)), ..Worker::default() };
    let job = Job {
        id: "1".into(),
        state: "running".into(),
        worker: Some("w".into()),
        started_at: Some(ago(200)),
        ..Job::default()
    };
    let plain = Evidence { has_key: false, has_session: false, ..evidence() };
    for (workers_at, state) in
        [(ago(0), JobState::Lost), (ago(30), JobState::Lost), (ago(50), JobState::Running)]
    {
        let seen = Facts { workers_at, worker: Some(&worker), has_workers: true, ..seen() };
        assert_eq!(judge(&plain, &job, &seen).state, state, "{workers_at}");
    }
    // A job that started just before the workers were read, or was read before them, may have a worker that is not yet
    // listed, or no longer.
    for (started, read_at, state) in
        [(200, ago(0), JobState::Lost), (5, ago(0), JobState::Unknown), (200, ago(3), JobState::Unknown)]
    {
        let job = Job { started_at: Some(ago(started)), ..job.clone() };
        let seen = Facts { read_at, worker: None, has_workers: true, ..seen() };
        assert_eq!(judge(&plain, &job, &seen).state, state, "{started} s, read at {read_at}");
    }
}
