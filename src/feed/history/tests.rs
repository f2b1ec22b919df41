use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::feed::view_builder::ViewBuilder;
use crate::model::Timestamp;
use crate::model::event::{EventKind, ExternalEvent};
use crate::model::finding::Severity;
use crate::model::lock_name::LockNames;
use crate::model::past::Incident;
use crate::model::view::View;
use crate::recording::{Encoder, SnapshotGroup};
use crate::sample::{self, at};

struct Stage {
    view_builder: ViewBuilder,
    store: HistoryStore,
    views: Vec<Arc<View>>,
}

impl Stage {
    fn new(limits: HistoryLimits) -> Self {
        Self {
            view_builder: ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default()),
            store: HistoryStore::new(limits, TargetId(0), Thresholds::default()),
            views: Vec::new(),
        }
    }

    fn poll(&mut self, builder: sample::Builder) {
        let past = self.view_builder.past();
        self.views.push(self.view_builder.snapshot_taken(builder.snapshot()));
        self.store.keep(&self.view_builder.observation(past));
    }

    fn calm(&mut self, from: u32, seconds: u32) {
        for second in from..from + seconds {
            self.poll(sample::Builder { now: f64::from(second), ..sample::Builder::default() });
        }
    }

    fn go(&mut self, from: u64, step: TimeStep) -> Option<Arc<PastView>> {
        self.store.go(from, step).unwrap()
    }

    fn newest(&self) -> u64 {
        self.views.last().unwrap().id
    }
}

fn time(past: Option<Arc<PastView>>) -> Timestamp {
    past.unwrap().view.snapshot.as_ref().unwrap().taken_at
}

#[test]
fn every_step_leads_to_the_expected_snapshot() {
    let mut stage = Stage::new(HistoryLimits::default());
    assert_eq!(stage.store.go(0, TimeStep::Snapshots(-1)).unwrap_err(), NotThere::Nothing);
    stage.calm(0, 150);
    let now = stage.newest();
    assert_eq!(time(stage.go(now, TimeStep::Snapshots(-1))), at(148.0));
    assert_eq!(time(stage.go(now, TimeStep::Snapshots(-100))), at(49.0));
    assert_eq!(time(stage.go(now, TimeStep::Snapshots(-1000))), at(0.0));
    assert_eq!(time(stage.go(now, TimeStep::Seconds(-60))), at(89.0));
    assert_eq!(time(stage.go(now, TimeStep::Seconds(-6000))), at(0.0));
    assert_eq!(time(stage.go(now, TimeStep::Time(at(70.4)))), at(70.0));
    assert_eq!(time(stage.go(now, TimeStep::Time(at(-1.0)))), at(0.0));
    assert_eq!(time(stage.go(now, TimeStep::Seen(at(70.4)))), at(71.0));
    assert_eq!(time(stage.go(now, TimeStep::Before(at(71.0)))), at(70.0));
    assert_eq!(time(stage.go(now, TimeStep::Before(at(-1.0)))), at(0.0));
    let (first, middle) = (stage.views[0].id, stage.views[75].id);
    assert_eq!(time(stage.go(middle, TimeStep::Snapshots(1))), at(76.0));
    assert_eq!(time(stage.go(middle, TimeStep::Seconds(60))), at(135.0));
    assert!(stage.go(middle, TimeStep::Seconds(600)).is_none(), "beyond the newest snapshot it is live");
    assert!(stage.go(now, TimeStep::Snapshots(1)).is_none());
    assert_eq!(stage.store.go(first, TimeStep::Snapshots(-1)).unwrap_err(), NotThere::Begin);
    assert_eq!(stage.store.go(first, TimeStep::Seconds(-60)).unwrap_err(), NotThere::Begin);
    assert_eq!(stage.store.go(now, TimeStep::IncidentBefore).unwrap_err(), NotThere::NoIncidentBefore);
    let past = stage.go(now, TimeStep::Snapshots(-10)).unwrap();
    assert_eq!((past.place, past.moments.len()), (139, 150));
}

#[test]
fn steps_to_incidents_lead_to_the_snapshots_of_the_incidents() {
    let mut stage = Stage::new(HistoryLimits::default());
    stage.calm(0, 10);
    stage.poll(sample::incident(10.0));
    stage.poll(sample::incident(11.0));
    stage.calm(12, 8);
    stage.view_builder.link_lost("gone", 1, Duration::from_secs(1));
    stage.calm(30, 10);
    let asked = ExternalEvent {
        kind: EventKind::ActionAsked,
        severity: Severity::Info,
        text: "asked to end 4312".to_owned(),
        subject: None,
    };
    let (sender, mut reader) = crate::feed::EventSender::new();
    sender.send(asked);
    stage.view_builder.events_received(reader.rest());
    stage.calm(40, 10);
    let now = stage.newest();
    let mut id = now;
    let mut seen = Vec::new();
    while let Ok(Some(past)) = stage.store.go(id, TimeStep::IncidentBefore) {
        let moment = past.moments[past.place];
        seen.push((moment.at, moment.incident.unwrap()));
        id = past.view.id;
    }
    let expected =
        [(at(40.0), Incident::Action), (at(19.0), Incident::NoAnswer), (at(10.0), Incident::Begun)];
    assert_eq!(seen, expected);
    assert_eq!(time(stage.go(id, TimeStep::NextIncident)), at(19.0));
    let worst = stage.go(now, TimeStep::Worst).unwrap();
    assert!(worst.view.graph.waiting > 0 && worst.view.snapshot.as_ref().unwrap().taken_at < at(12.0));
}

#[test]
fn the_oldest_make_room_by_age_and_by_memory() {
    let mut stage =
        Stage::new(HistoryLimits { length: Duration::from_secs(200), ..HistoryLimits::default() });
    stage.calm(0, 1000);
    let now = stage.newest();
    let first = time(stage.go(now, TimeStep::Snapshots(-10_000)));
    assert!(first <= at(799.0) && first > at(799.0 - 64.0), "{first}");
    assert_eq!(
        time(stage.go(stage.views[3].id, TimeStep::Snapshots(1))),
        first,
        "the snapshot that was shown was removed from memory"
    );

    let memory = 100_000;
    let mut stage = Stage::new(HistoryLimits { memory, ..HistoryLimits::default() });
    for second in 0..800 {
        stage.poll(sample::jobs(f64::from(second)));
        assert!(stage.store.bytes() <= memory);
    }
    let now = stage.newest();
    let oldest = stage.go(now, TimeStep::Snapshots(-10_000)).unwrap();
    assert!(oldest.moments.len() < 800 && oldest.moments.len() >= 64, "{}", oldest.moments.len());
}

/// Each snapshot keeps its events, even after the log has dropped them.
#[test]
fn events_of_the_past_are_those_that_were_known_then() {
    let mut stage = Stage::new(HistoryLimits::default());
    let (sender, mut reader) = crate::feed::EventSender::new();
    for second in 0..200 {
        for number in 0..300 {
            sender.send(ExternalEvent {
                kind: EventKind::ActionResult,
                severity: Severity::Info,
                text: format!("{second} {number}"),
                subject: None,
            });
        }
        stage.view_builder.events_received(reader.rest());
        stage.calm(second, 1);
    }
    assert!(stage.views.last().unwrap().events.dropped() > 0, "the log has dropped the first");
    for view in stage.views.clone() {
        let past = stage.go(view.id, TimeStep::Snapshots(0)).unwrap();
        let (kept, was) = (&past.view.events, &view.events);
        assert_eq!((kept.dropped(), kept.len()), (was.dropped(), was.len()));
        assert!(kept.iter().eq(was.iter()));
    }
}

#[test]
fn a_full_history_queue_drops_snapshots_instead_of_blocking() {
    let (commands, received) = mpsc::channel();
    let history_sender = HistorySender { commands, queued: Arc::default() };
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    for _ in 0..QUEUE + 5 {
        let past = view_builder.past();
        view_builder.snapshot_taken(sample::incident(0.0).snapshot());
        history_sender.keep(view_builder.observation(past));
    }
    assert_eq!(received.try_iter().count(), QUEUE);
}

#[test]
fn a_clock_that_was_set_back_is_survived() {
    let mut stage = Stage::new(HistoryLimits::default());
    stage.calm(100, 10);
    stage.calm(50, 10);
    let now = stage.newest();
    assert_eq!(time(stage.go(now, TimeStep::Snapshots(-10))), at(109.0));
    assert_eq!(time(stage.go(now, TimeStep::Snapshots(-9))), at(50.0));
    let back = time(stage.go(now, TimeStep::Seconds(-5)));
    assert!(back <= at(54.0) || back == at(54.0), "{back}");
    assert!(time(stage.go(now, TimeStep::Time(at(1000.0)))) >= at(59.0) - TimeDelta::zero());
}

fn packed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(zstd_safe::compress_bound(payload.len()));
    zstd_safe::compress(&mut bytes, payload, 1).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// With valid checksum and compression, any columns give either a view or an error.
    #[test]
    fn a_forged_snapshot_gives_a_view_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        scene in 0..3,
    ) {
        let builder = match scene {
            0 => sample::incident(0.0),
            1 => sample::jobs(0.0),
            _ => sample::crowd(3, 5, 0.0),
        };
        let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
        view_builder.snapshot_taken(sample::jobs(0.0).snapshot());
        let past = view_builder.past();
        view_builder.snapshot_taken(builder.snapshot());
        let frame = Encoder::with_events().encode(&view_builder.observation(past)).unwrap();
        let mut payload = Vec::with_capacity(frame.size);
        zstd_safe::decompress(&mut payload, &frame.bytes).unwrap();
        for (at, byte) in changes {
            let place = at.index(payload.len());
            payload[place] = byte;
        }
        let mut group = SnapshotGroup::default();
        if group.open(&packed(&payload)).is_ok()
            && let Ok(kept) = group.snapshot(0)
        {
            let view = ViewBuilder::view_of(kept, TargetId(0), &Thresholds::default());
            let _ = crate::output::json::to_string(&view);
        }
    }
}

#[test]
fn snapshots_in_memory_are_saved_with_notes_and_without_passwords() {
    use crate::feed::EventSender;
    use crate::feed::replay::Recording;
    let mut stage = Stage::new(HistoryLimits::default());
    let (sender, mut reader) = EventSender::new();
    for second in 0..70 {
        if second == 30 {
            let text = "restarted the pool".to_owned();
            sender.send(ExternalEvent {
                kind: EventKind::Note,
                severity: Severity::Info,
                text,
                subject: None,
            });
            stage.view_builder.events_received(reader.rest());
        }
        let mut builder = sample::blame(second);
        for backend in builder.backends.iter_mut().filter(|backend| backend.pid == 4288) {
            backend.query = Some("ALTER ROLE app PASSWORD 's3cret'".into());
        }
        stage.poll(builder);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.ltr");
    let (sender, mut replies) = answers::unbounded_channel();
    let mut save = || {
        store::start_saving(stage.store.copy(), path.clone(), RecordingInfo::default(), sender.clone());
        match replies.blocking_recv() {
            Some(Reply::Saved(message)) => message,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        save(),
        format!("70 snapshots are in {}: for locktop replay and locktop report", path.display())
    );
    let exists = format!("{}: file exists; remove it, or name another file", path.display());
    assert_eq!(save(), exists, "no file is overwritten");
    let bytes = std::fs::read(&path).unwrap();
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!(recording.moments().len(), 70);
    for place in [0, 29, 30, 69] {
        let (then, now) = (&stage.views[place], recording.view(place).unwrap());
        let waiting =
            |view: &View| (view.graph.waiting, view.blame.total(crate::model::blame::BlamePeriod::All));
        assert_eq!(waiting(then), waiting(&now), "{place}");
    }
    let last = recording.view(69).unwrap();
    assert!(
        last.events.iter().any(|event| event.kind == EventKind::Note && event.text() == "restarted the pool")
    );
    assert!(!bytes.windows(6).any(|part| part == b"s3cret") && !format!("{last:?}").contains("s3cret"));
}

#[test]
fn the_texts_of_a_deadlock_have_no_password() {
    use crate::feed::record::redact::Redaction;
    use crate::model::Text;
    use crate::model::event::{Event, EventBody, Events};
    use crate::model::finding::deadlocks::SeenCycle;
    use crate::model::past::GraphFrom;
    let mut stage = Stage::new(HistoryLimits::default());
    stage.poll(sample::incident(0.0));
    let mut kept = stage.store.copy().read(0).unwrap();
    let statement = "alter role app PASSWORD 's3cret'";
    let text: Text = format!("4410 deploy@ci waited for Share on accounts: {statement}").into();
    let seen_at = kept.snapshot.taken_at;
    kept.past.deadlocks.cycles.push(SeenCycle {
        parties: Vec::new(),
        texts: vec![text.clone()],
        at: seen_at,
    });
    let mut sessions = kept.snapshot.backends.last_rows().as_ref().clone();
    sessions[0].query = Some(statement.into());
    kept.past.graph_from = Some(GraphFrom { backends: Arc::new(sessions), answers: Vec::new() });
    let body = EventBody::new(seen_at, EventKind::Deadlock, Severity::Critical, &*text);
    let mut events = Events::clone(&kept.events);
    events.append(Event { number: 7, seen: seen_at, body });
    kept.events = Arc::new(events);
    assert!(format!("{kept:?}").contains("s3cret"));
    Redaction::None.apply_to_recorded(&mut kept);
    let left = format!("{kept:?}");
    assert!(!left.contains("s3cret") && left.contains("deploy@ci waited for Share on accounts"));
}
