use super::*;
use crate::model::Timestamp;
use crate::model::event::EventKind;
use crate::model::finding::Severity;
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use crate::model::snapshot::{Detection, Section};
use crate::model::source_tables::TableRows;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(seconds, 0).unwrap()
}

fn lock(pid: i32, granted: bool) -> Lock {
    Lock {
        tag: LockTag::new(LockType::Advisory).with_objid(7),
        mode: LockMode::Exclusive,
        granted,
        pid: Some(pid),
        virtualtransaction: VirtualTransaction { proc_number: pid, local_xid: 1 },
        wait_start: (!granted).then(|| at(0)),
    }
}

fn snapshot(seconds: i64, locks: Section<Lock>) -> Snapshot {
    Snapshot {
        taken_at: at(seconds),
        server: Section::default(),
        backends: Section::fresh(Vec::new(), at(seconds)),
        locks,
        locks_omitted: 0,
        prepared: Section::fresh(Vec::new(), at(seconds)),
        detection: Detection::done(at(seconds)),
        task_sets: std::sync::Arc::default(),
        adapters: std::sync::Arc::default(),
        sources: std::sync::Arc::default(),
        answers: Vec::new(),
        names: Arc::default(),
        poll_seconds: 0.0,
    }
}

#[test]
fn a_root_is_left_to_itself_for_a_moment_before_ending_it_is_proposed() {
    use crate::model::backend::State;
    use crate::model::lock::{LockMode, LockType};
    let table = |number| crate::model::lock::LockTag::new(LockType::Relation).with_relation(number);
    let scene = |now: f64, holder: i32, waiters: i32| {
        let mut b = crate::sample::Builder { now, ..crate::sample::Builder::default() };
        for pid in 1..=waiters + 1 {
            b.session(pid, "app@web", State::Active, 40.0, "LOCK TABLE t");
            let waits = (pid != holder).then_some(35.0);
            b.lock(pid, table(7), LockMode::AccessExclusive, waits);
        }
        b.snapshot()
    };
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let mut root = |now, holder, waiters| {
        let view = view_builder.snapshot_taken(scene(now, holder, waiters));
        let found = view.findings.iter().find(|finding| finding.check == "root_blocker").unwrap().clone();
        (found.severity, found.help)
    };
    assert_eq!(
        root(0.0, 1, 9),
        (Severity::Warning, Some("cancel")),
        "a root of the first snapshot may be old"
    );
    assert_eq!(root(1.0, 2, 9), (Severity::Info, None), "the next one has just acquired the lock");
    assert_eq!(root(5.9, 2, 9), (Severity::Info, None));
    assert_eq!(root(6.0, 2, 9), (Severity::Warning, Some("cancel")));
    assert_eq!(root(7.0, 3, 10), (Severity::Critical, Some("cancel")), "many are critical at once");
}

#[test]
fn locks_that_could_not_be_read_make_nothing_new() {
    let mut view_builder = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
    let fresh = Section::fresh(vec![lock(1, true), lock(2, false)], at(20));
    let first = view_builder.snapshot_taken(snapshot(20, fresh.clone()));
    assert_eq!(first.graph.waiting, 1);
    assert!(first.findings.iter().any(|finding| finding.check == "root_blocker"));
    let second = view_builder.snapshot_taken(snapshot(21, fresh.stale("lock timeout".into())));
    assert!(Arc::ptr_eq(&first.graph, &second.graph) && Arc::ptr_eq(&first.series, &second.series));
    assert!(Arc::ptr_eq(&first.held_since, &second.held_since));
    let checks: Vec<_> = second.findings.iter().map(|finding| finding.check).collect();
    assert_eq!(checks, ["stale_section"]);
    let third = view_builder.snapshot_taken(snapshot(22, fresh));
    assert!(third.findings.iter().any(|finding| finding.check == "root_blocker"));
    assert_eq!(third.series.samples.iter().map(|sample| sample.at).collect::<Vec<_>>(), [at(20), at(22)]);
}

#[test]
fn a_received_event_is_in_the_view_at_once_with_the_servers_time() {
    let mut view_builder = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default());
    let first = view_builder.snapshot_taken(snapshot(20, Section::fresh(Vec::new(), at(20))));
    let (event_sender, mut reader) = crate::feed::EventSender::new();
    let text = "terminated 4312 \u{1b}[31m".to_owned();
    event_sender.send(ExternalEvent {
        kind: EventKind::ActionResult,
        severity: Severity::Info,
        text,
        subject: None,
    });
    let view = view_builder.events_received(reader.rest());
    let new: Vec<_> = view.events.iter().skip(first.events.len()).collect();
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].text(), "terminated 4312 ␛[31m");
    // Some time after the snapshot, by the server's clock alone.
    assert!(new[0].at >= at(20) && new[0].at < at(20) + chrono::TimeDelta::hours(1), "{}", new[0].at);
    assert!(view.id > first.id && view.snapshot.is_some());
}

#[test]
fn waits_are_counted_from_the_first_snapshot_on() {
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let mut poll = |seconds, locks: Vec<Lock>| {
        let view = view_builder.snapshot_taken(snapshot(seconds, Section::fresh(locks, at(seconds))));
        let one = view.lock_waits.locks.first().map(|lock| (lock.waits, lock.total, lock.waiting));
        (view.lock_waits.since, one)
    };
    assert_eq!(poll(10, vec![lock(1, true), lock(2, false)]), (Some(at(10)), Some((1, 10.0, 1))));
    assert_eq!(poll(12, vec![lock(1, true), lock(2, false)]), (Some(at(10)), Some((1, 12.0, 1))));
    assert_eq!(poll(14, vec![lock(2, true)]), (Some(at(10)), Some((1, 12.0, 0))));
}

fn waiting(waiting: u32) -> WaitGraph {
    let mut graph = WaitGraph::default();
    graph.waiting = waiting;
    graph
}

#[test]
fn samples_fall_off_at_the_far_end() {
    let mut series = Series::default();
    for second in 0..200 {
        series = extended(&series, at(second), &waiting(0), 1);
    }
    assert_eq!(series.samples.len(), 61);
    assert_eq!(series.samples[0].at, at(139));
    assert_eq!(series.samples[60].at, at(199));
}

#[test]
fn refusals_of_a_table_that_is_not_known_are_no_sample_and_old_ones_fall_off() {
    let table = |count: Option<i64>| TableRows {
        section: count.map_or_else(Section::default, |count| {
            Section::fresh(vec![Refusals { rate_limit: Some(count), ..Refusals::default() }], at(0))
        }),
        ..TableRows::default()
    };
    let systems = |counts: &[Option<i64>]| SourceTables {
        refusals: counts.iter().map(|count| table(*count)).collect(),
        ..SourceTables::default()
    };
    let mut series = Series::default();
    for (second, counts) in [(0, [Some(5), Some(100)]), (2, [None, Some(100)]), (4, [Some(6), Some(100)])] {
        refused(&mut series, at(second), &systems(&counts));
    }
    let known = |series: &Series| series.refusals.iter().map(|one| one.rate_limit).collect::<Vec<_>>();
    assert_eq!(known(&series), [Some(105), Some(106)]);
    refused(&mut series, at(62), &systems(&[]));
    assert_eq!(known(&series), [Some(106)]);
    refused(&mut series, at(70), &systems(&[]));
    assert_eq!(known(&series), []);
}

#[test]
fn the_start_of_waiting_stays_until_no_session_waits() {
    let first = extended(&Series::default(), at(10), &waiting(1), 15);
    let second = extended(&first, at(11), &waiting(3), 15);
    assert_eq!(second.waiting_since, Some(at(10)));
    let none = extended(&second, at(12), &waiting(0), 15);
    assert_eq!(none.waiting_since, None);
    assert_eq!(extended(&none, at(13), &waiting(1), 15).waiting_since, Some(at(13)));
}

#[test]
fn a_clock_that_was_set_back_leaves_no_samples_of_the_future() {
    let series = extended(&Series::default(), at(100), &waiting(0), 15);
    let series = extended(&series, at(50), &waiting(0), 15);
    assert_eq!(series.samples.iter().map(|sample| sample.at).collect::<Vec<_>>(), [at(50)]);
}
