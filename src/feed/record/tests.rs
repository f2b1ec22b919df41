use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::redact::Redaction;
use super::*;
use crate::feed::history::Reply;
use crate::feed::replay::{self, Recording, ReplayError};
use crate::feed::view_builder::ViewBuilder;
use crate::model::lock_name::LockNames;
use crate::model::past::{PastView, TimeStep};
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::sample;

fn options(place: Destination) -> Options {
    let about = RecordingInfo {
        program: "test".to_owned(),
        target: "app@db:5432".to_owned(),
        thresholds: Thresholds { blocked: 3, ..Thresholds::default() },
        ..RecordingInfo::default()
    };
    Options { place, sync: Duration::from_secs(1), rotation: Rotation::default(), about, on_trouble: None }
}

struct Stage {
    view_builder: ViewBuilder,
    views: Vec<Arc<View>>,
}

impl Stage {
    fn new() -> Self {
        let thresholds = options(Destination::Output).about.thresholds;
        Self {
            view_builder: ViewBuilder::new(TargetId(0), thresholds, LockNames::default()),
            views: Vec::new(),
        }
    }

    fn poll(&mut self, builder: sample::Builder) -> Observation {
        let past = self.view_builder.past();
        self.views.push(self.view_builder.snapshot_taken(builder.snapshot()));
        self.view_builder.observation(past)
    }

    fn record(&mut self, path: &Path, seconds: std::ops::Range<u32>) {
        let mut recorder = Recorder::open(options(Destination::File(path.to_owned()))).unwrap();
        for second in seconds {
            let now = f64::from(second);
            let scene = if second % 10 < 5 { sample::incident(now) } else { sample::jobs(now) };
            let observation = self.poll(scene);
            recorder.write(&observation).unwrap();
        }
        recorder.end().unwrap();
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn view_of(reply: Reply) -> Arc<PastView> {
    match reply {
        Reply::View(answer) => answer.unwrap().unwrap(),
        Reply::Saved(message) => panic!("{message}"),
    }
}

fn json(view: &View) -> String {
    crate::output::json::to_string(view).unwrap().unwrap()
}

#[test]
fn a_recording_shows_the_same_views_as_live() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let mut stage = Stage::new();
    stage.record(&path, 0..150);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!(recording.about().unwrap().target, "app@db:5432");
    assert_eq!(recording.moments().len(), 150);
    for place in [149, 148, 130, 0, 63, 64, 65, 1, 100, 99, 149] {
        let (view, live) = (recording.view(place).unwrap(), &stage.views[place]);
        assert_eq!(json(&view), json(live), "{place}");
        assert_eq!((&view.findings, &view.series), (&live.findings, &live.series));
        let last = |view: &View| view.events.iter().rev().take(20).cloned().collect::<Vec<_>>();
        assert_eq!(last(&view), last(live));
    }
    let past = recording.go(150, TimeStep::IncidentBefore).unwrap().unwrap();
    assert!(past.moments[past.place].incident.is_some());
    assert!(recording.go(150, TimeStep::Snapshots(1)).unwrap().is_none());
}

/// The bytes of a small recording, and the end of each snapshot.
fn small(folder: &Path) -> (Vec<u8>, Vec<usize>) {
    let path = folder.join("small.ltr");
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    let mut stage = Stage::new();
    let mut ends = Vec::new();
    for second in 0..4 {
        let now = f64::from(second);
        let mut scene = sample::Builder { now, ..sample::Builder::default() };
        scene.session(7, "app@web", crate::model::backend::State::Idle, now, "SELECT 1");
        let observation = stage.poll(scene);
        recorder.write(&observation).unwrap();
        ends.push(usize::try_from(path.metadata().unwrap().len()).unwrap());
    }
    recorder.end().unwrap();
    (std::fs::read(&path).unwrap(), ends)
}

#[test]
fn a_file_cut_anywhere_has_all_snapshots_before_the_cut() {
    let folder = folder();
    let (bytes, ends) = small(folder.path());
    let path = folder.path().join("cut.ltr");
    for length in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let mut recording = Recording::of(vec![(file, path.clone())]).unwrap();
        let whole = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(recording.moments().len(), whole, "cut at {length}");
        for place in 0..whole {
            recording.view(place).unwrap();
        }
    }
}

/// Damage costs at most its group, and never causes a panic.
#[test]
fn a_file_that_is_damaged_anywhere_is_read_around_it() {
    let folder = folder();
    let (bytes, _) = small(folder.path());
    let path = folder.path().join("damaged.ltr");
    // Twice the same, so that a complete group follows the damage.
    let both = [bytes.clone(), bytes.clone()].concat();
    for at in 0..bytes.len() {
        let mut damaged = both.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let mut recording = Recording::of(vec![(file, path.clone())]).unwrap();
        let count = recording.moments().len();
        assert!((4..=8).contains(&count), "{count} snapshots with byte {at} damaged");
        for place in count - 4..count {
            recording.view(place).unwrap();
        }
        let _ = recording.go(count as u64, TimeStep::Snapshots(-5));
    }
}

#[test]
fn a_recording_is_appended_to_and_another_file_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let mut stage = Stage::new();
    stage.record(&path, 0..5);
    let bytes = std::fs::read(&path).unwrap();
    // The recorder was killed in the middle of a record.
    std::fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    stage.record(&path, 5..10);
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!(recording.moments().len(), 9);
    assert_eq!(json(&recording.view(8).unwrap()), json(&stage.views[9]));

    // Damage in the middle does not remove later records.
    let mut damaged = std::fs::read(&path).unwrap();
    let middle = damaged.len() / 4;
    damaged[middle] ^= 0x55;
    std::fs::write(&path, &damaged).unwrap();
    stage.record(&path, 10..12);
    let mut recording = Recording::open(&path).unwrap();
    let count = recording.moments().len();
    assert!(std::fs::metadata(&path).unwrap().len() > damaged.len() as u64 && count >= 6, "{count}");
    assert_eq!(json(&recording.view(count - 1).unwrap()), json(&stage.views[11]));

    let other = folder.path().join("other.txt");
    std::fs::write(&other, "important").unwrap();
    assert!(Recorder::open(options(Destination::File(other.clone()))).is_err());
    assert_eq!(std::fs::read(&other).unwrap(), b"important");
    assert!(matches!(Recording::open(&other), Err(ReplayError::Nothing(_))));
}

#[test]
fn a_folder_gets_a_file_for_each_stretch_and_belongs_to_one() {
    let folder = folder();
    let place = Destination::Folder(folder.path().to_owned(), "prod".to_owned());
    let rotation = Rotation { size: Some(1), ..Rotation::default() };
    let options = Options { rotation, ..options(place) };
    let mut recorder = Recorder::open(options.clone()).unwrap();
    assert!(
        Recorder::open(options.clone()).is_err_and(|error| error.to_string().contains("another process"))
    );
    let (mut stage, report): (_, Report) = (Stage::new(), Box::new(|word| panic!("{word}")));
    for second in 0..4 {
        let observation = stage.poll(sample::incident(f64::from(second)));
        recorder.keep(&observation, &report).unwrap();
    }
    recorder.end().unwrap();
    let count = || files(folder.path()).unwrap().len();
    assert!(count() >= 4);
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.moments().len(), 4);
    // Excess files are removed, oldest first.
    let rotation = Rotation { keep_size: Some(1), ..rotation };
    let mut recorder = Recorder::open(Options { rotation, ..options }).unwrap();
    recorder.keep(&stage.poll(sample::incident(4.0)), &report).unwrap();
    recorder.end().unwrap();
    assert_eq!(count(), 1);
}

/// The reported counts match the file.
#[test]
fn only_snapshots_in_the_file_are_counted() {
    let folder = folder();
    let path = folder.path().join("counted.ltr");
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    let mut stage = Stage::new();
    for second in 0..3 {
        let now = f64::from(second);
        let mut scene = sample::Builder { now, ..sample::Builder::default() };
        // Above the size limit: its statement is cut.
        let query = if second == 1 { "x".repeat(33 << 20) } else { "SELECT 1".to_owned() };
        scene.session(7, "app@web", crate::model::backend::State::Idle, now, &query);
        let observation = stage.poll(scene);
        recorder.write(&observation).unwrap();
    }
    assert_eq!(recorder.snapshots(), 3);
    recorder.end().unwrap();
    assert_eq!(Recording::open(&path).unwrap().moments().len(), 3);
}

#[test]
fn a_growing_recording_is_followed() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let mut stage = Stage::new();
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    let observation = stage.poll(sample::incident(0.0));
    recorder.write(&observation).unwrap();
    let recording = Recording::open(&path).unwrap();
    let mut history = replay::start(recording, TimeStep::Snapshots(0), true, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let first = view_of(history.answer().await);
        assert_eq!(json(&first.view), json(&stage.views[0]));
        for second in 1..4 {
            let observation = stage.poll(sample::incident(f64::from(second)));
            recorder.write(&observation).unwrap();
            let next = view_of(history.answer().await);
            assert_eq!(json(&next.view), json(stage.views.last().unwrap()));
        }
    });
}

#[test]
fn redacted_parts_of_statements_are_not_recorded() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let mut stage = Stage::new();
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    for (redaction, query) in [
        (Redaction::None, "ALTER ROLE app PASSWORD 'hunter2'"),
        (Redaction::Literals, "SELECT 'hunter2'"),
        (Redaction::Queries, "SELECT 'hunter2'"),
    ] {
        let mut scene = sample::Builder::default();
        scene.session(7, "app@web", crate::model::backend::State::Active, 1.0, query);
        let mut snapshot = scene.snapshot();
        redaction.apply(&mut snapshot);
        let past = stage.view_builder.past();
        stage.views.push(stage.view_builder.snapshot_taken(snapshot));
        recorder.write(&stage.view_builder.observation(past)).unwrap();
    }
    recorder.end().unwrap();
    let mut recording = Recording::open(&path).unwrap();
    for place in 0..3 {
        assert!(!format!("{:?}", recording.read(place).unwrap()).contains("hunter2"), "{place}");
    }
}

fn secrets(now: f64) -> sample::Builder {
    let mut scene = sample::Builder {
        now,
        relations: vec![(9, "s3cret_t"), (10, "s3cret.t")],
        ..sample::Builder::default()
    };
    let active = crate::model::backend::State::Active;
    scene.session(7, "s3cret_role@s3cret_app", active, 1.0, "UPDATE s3cret_t SET s3cret_c = 's3cret'");
    scene.session(8, "s3cret_role@other", active, 1.0, "UPDATE s3cret_t SET s3cret_c = 'another'");
    scene.session(9, "x@y", active, 1.0, "s3cret nonsense");
    for backend in &mut scene.backends {
        backend.database = Some("s3cret_db".into());
        backend.client = Some("s3cret.example.com".into());
    }
    scene.backends[2].backend_type = Some("s3cret worker".into());
    scene.backends[2].wait_event_type = Some("Extension".into());
    scene.backends[2].wait_event = Some("s3cret event".into());
    scene.lock(7, sample::relation(9), crate::model::lock::LockMode::Exclusive, None);
    scene.lock(8, sample::relation(9), crate::model::lock::LockMode::Exclusive, Some(40.0));
    scene.prepare(900, "s3cret_gid", sample::relation(10), crate::model::lock::LockMode::AccessExclusive);
    scene.task(1, "s3cret_task", "s3cret_kind", 60.0, -5.0);
    scene.lease("s3cret_lease", "s3cret_owner", 60.0, 5.0);
    scene.item(5, "s3cret_item", "pending", 5.0);
    scene
}

fn secret_snapshot(now: f64) -> crate::model::snapshot::Snapshot {
    let mut snapshot = secrets(now).snapshot();
    let mut server = snapshot.server.last_rows()[0].clone();
    (server.host, server.database, server.user) =
        ("s3cret.host".into(), "s3cret_db".into(), "s3cret_role".into());
    snapshot.server.set(vec![server]);
    snapshot.prepared.error = Some("role s3cret_role may not".into());
    snapshot
}

#[test]
fn names_are_hashes_that_stay_the_same_within_a_file() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let redaction = Redaction::Names(names::Salt::random().unwrap());
    let mut stage = Stage::new();
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    for second in 0..3 {
        let mut snapshot = secret_snapshot(f64::from(second));
        redaction.apply(&mut snapshot);
        let mut again = snapshot.clone();
        redaction.apply(&mut again);
        assert_eq!(again.backends.last_rows(), snapshot.backends.last_rows(), "hashes are not hashed again");
        let past = stage.view_builder.past();
        stage.views.push(stage.view_builder.snapshot_taken(snapshot));
        recorder.write(&stage.view_builder.observation(past)).unwrap();
    }
    recorder.end().unwrap();
    assert_none_in(&path);
    let mut recording = Recording::open(&path).unwrap();
    let (first, last) = (recording.read(0).unwrap().snapshot, recording.read(2).unwrap().snapshot);
    assert_eq!(first.names.relations, last.names.relations);
    let (one, two) = (&first.backends.last_rows()[0], &first.backends.last_rows()[1]);
    assert_eq!((&one.user, &one.query, one.application == two.application), (&two.user, &two.query, false));
    assert!(one.query.as_ref().unwrap().unredacted().starts_with("UPDATE query-"), "{one:?}");
    assert_eq!(recording.view(0).unwrap().graph.waiting, 1, "the wait graph is kept");
    let other = names::Salt::random().unwrap().hash("role", "s3cret_role");
    assert_ne!(Some(&other), one.user.as_ref(), "another recorder has other hashes");
}

fn assert_none_in(path: &Path) {
    let mut recording = Recording::open(path).unwrap();
    for place in 0..recording.moments().len() {
        let read = format!("{:?}", recording.read(place).unwrap());
        let shown = json(&recording.view(place).unwrap());
        for text in [&read, &shown] {
            let at = text.find("s3cret");
            assert!(at.is_none(), "{}", &text[at.unwrap().saturating_sub(200)..][..300]);
        }
    }
}

#[test]
fn names_are_taken_out_of_a_recording_that_has_them() {
    let folder = folder();
    let (whole, named) = (folder.path().join("x.ltr"), folder.path().join("y.ltr"));
    let mut stage = Stage::new();
    let mut recorder = Recorder::open(options(Destination::File(whole.clone()))).unwrap();
    for second in 0..3 {
        let past = stage.view_builder.past();
        stage.views.push(stage.view_builder.snapshot_taken(secret_snapshot(f64::from(second))));
        recorder.write(&stage.view_builder.observation(past)).unwrap();
    }
    recorder.end().unwrap();
    let redaction = Redaction::Names(names::Salt::random().unwrap());
    let mut recording = Recording::open(&whole).unwrap();
    let mut recorder = Recorder::open(options(Destination::File(named.clone()))).unwrap();
    for place in 0..3 {
        let mut kept = recording.read(place).unwrap();
        assert!(format!("{kept:?}").contains("s3cret_task"), "names are recorded");
        redaction.apply_to_recorded(&mut kept);
        let (past, notes) = (Arc::new(kept.past.clone()), Arc::clone(&kept.notes));
        let view = ViewBuilder::view_of(kept, TargetId::default(), &recording.thresholds());
        recorder.write(&Observation { view, past, notes }).unwrap();
    }
    recorder.end().unwrap();
    assert_none_in(&named);
}

/// An idle session, without findings.
fn calm(now: f64) -> sample::Builder {
    let mut scene = sample::Builder { now, ..sample::Builder::default() };
    scene.session(7, "app@web", crate::model::backend::State::Idle, 1.0, "COMMIT");
    scene
}

/// Records a snapshot per second, with incidents at these times. Returns the messages.
fn flown(
    place: Destination,
    seconds: std::ops::Range<u32>,
    incidents: &[std::ops::Range<u32>],
) -> Vec<String> {
    let around = Around { before: Duration::from_secs(10), after: Duration::from_secs(5) };
    let (sender, messages) = std::sync::mpsc::channel();
    let report: Report = Box::new(move |text: &str| sender.send(text.to_owned()).unwrap());
    let mut stage = Stage::new();
    let mut recorder = Recorder::open(Options { on_trouble: Some(around), ..options(place) }).unwrap();
    for second in seconds {
        let is_incident = incidents.iter().any(|incident| incident.contains(&second));
        let now = f64::from(second);
        let observation = stage.poll(if is_incident { sample::incident(now) } else { calm(now) });
        recorder.keep(&observation, &report).unwrap();
    }
    recorder.end().unwrap();
    messages.try_iter().collect()
}

/// The times of the snapshots in a file, in seconds. Checks that each can be read.
fn seconds_in(path: &Path) -> Vec<i64> {
    let mut recording = Recording::open(path).unwrap();
    let moments = recording.moments().to_vec();
    for place in 0..moments.len() {
        recording.view(place).unwrap();
    }
    moments.iter().map(|moment| (moment.at - sample::at(0.0)).num_seconds()).collect()
}

#[test]
fn a_flight_recorder_writes_only_incidents_and_the_time_around_them() {
    let folder = folder();
    let place = Destination::Folder(folder.path().to_owned(), "prod".to_owned());
    assert_eq!(flown(place.clone(), 0..300, &[]), Vec::<String>::new());
    assert_eq!(files(folder.path()).unwrap(), Vec::<PathBuf>::new(), "there was no incident");

    let messages = flown(place, 0..500, &[200..203, 205..206, 400..401]);
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert!(messages[0].contains(" blocks ") && messages[0].contains(": recording to "), "{messages:?}");
    assert!(messages[1].starts_with("the incident is over: recorded to "), "{messages:?}");
    let files = files(folder.path()).unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
    for (path, begun, last) in [(&files[0], 200, 210), (&files[1], 400, 405)] {
        let seconds = seconds_in(path);
        let (first, end) = (seconds[0], *seconds.last().unwrap());
        assert!(first <= begun - 10 && first > begun - 10 - 65, "from {first} on");
        assert_eq!(
            (end, seconds.len()),
            (last, usize::try_from(last - first).unwrap() + 1),
            "no snapshot is missing"
        );
    }
}

#[test]
fn a_second_incident_is_recorded_into_the_same_file() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let messages = flown(Destination::File(path.clone()), 0..200, &[20..22, 150..152]);
    assert_eq!(
        messages
            .iter()
            .filter(|message| message.ends_with(&format!("recording to {}", path.display())))
            .count(),
        2,
        "{messages:?}"
    );
    let seconds = seconds_in(&path);
    assert!(seconds.contains(&26) && !seconds.contains(&60) && seconds.contains(&141), "{seconds:?}");
    let nowhere = Destination::File(folder.path().join("no/x.ltr"));
    let around = Around { before: Duration::ZERO, after: Duration::ZERO };
    assert!(
        Recorder::open(Options { on_trouble: Some(around), ..options(nowhere) }).is_err(),
        "reported at once"
    );
}

#[test]
fn a_flight_recorder_ended_during_an_incident_keeps_its_snapshots() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let messages = flown(Destination::File(path.clone()), 0..30, &[25..40, 50..60]);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(seconds_in(&path).last(), Some(&29));
}

/// Recordings of all releases, which must stay readable, and their views. `LOCKTOP_ACCEPT=1` writes those of this release
/// if they are missing.
#[test]
fn recordings_of_every_release_are_read() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let (path, shown) = (corpus.join("format-1.ltr"), corpus.join("format-1.jsonl"));
    if std::env::var_os("LOCKTOP_ACCEPT").is_some() && !path.exists() {
        std::fs::create_dir_all(&corpus).unwrap();
        let mut stage = Stage::new();
        stage.record(&path, 0..70);
        let lines: Vec<String> = [0, 7, 69].map(|place| json(&stage.views[place])).into();
        std::fs::write(&shown, lines.join("\n")).unwrap();
    }
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!(recording.moments().len(), 70);
    let text = std::fs::read_to_string(&shown).unwrap();
    for (place, line) in [0, 7, 69].into_iter().zip(text.lines()) {
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let (then, now) = (parse(line), parse(&json(&recording.view(place).unwrap())));
        assert!(has_all(&now, &then), "snapshot {place} of {}:\n{now}\nand before:\n{then}", path.display());
    }
}

/// Whether all old data is present; a later release can add more.
fn has_all(now: &serde_json::Value, then: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Object};
    match (now, then) {
        (Object(now), Object(then)) => {
            // Text for users can change.
            let is_words = |key: &str| matches!(key, "summary" | "about");
            then.iter().all(|(key, then)| now.get(key).is_some_and(|now| is_words(key) || has_all(now, then)))
        }
        (Array(now), Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| has_all(now, then))
        }
        (now, then) => now == then,
    }
}

/// Expected blockers can change during a recording; each snapshot uses those of its time.
#[test]
fn a_recording_keeps_the_expected_blockers_of_each_snapshot() {
    let folder = folder();
    let path = folder.path().join("x.ltr");
    let entry = crate::model::thresholds::ExpectedBlocker {
        application: Some("web-3".into()),
        reason: Some("known".into()),
        ..Default::default()
    };
    let mut stage = Stage::new();
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    for second in 0..150_u32 {
        if second % 20 == 5 {
            stage.view_builder.expect([entry.clone()].into());
        }
        if second % 20 == 15 {
            stage.view_builder.expect([].into());
        }
        let observation = stage.poll(sample::incident(f64::from(second)));
        recorder.write(&observation).unwrap();
    }
    recorder.end().unwrap();
    let mut recording = Recording::open(&path).unwrap();
    let expected = |view: &View| view.findings.iter().filter(|finding| finding.expected.is_some()).count();
    for place in [0, 5, 14, 15, 64, 66, 75, 76, 129, 149] {
        let (live, kept) = (&stage.views[place], recording.view(place).unwrap());
        assert_eq!(kept.findings, live.findings, "snapshot {place}");
        assert_eq!(expected(&kept), usize::from((5..15).contains(&(place % 20))), "snapshot {place}");
    }
    recording.judge_by(Thresholds::default());
    assert_eq!(expected(&recording.view(5).unwrap()), 0, "by the current config");
}

#[test]
fn a_snapshot_that_is_too_large_is_kept_with_shorter_statements() {
    let folder = folder();
    let path = folder.path().join("large.ltr");
    let (mut stage, messages) = (Stage::new(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let sink = Arc::clone(&messages);
    let report: Report = Box::new(move |word| sink.lock().unwrap().push(word.to_owned()));
    let mut recorder = Recorder::open(options(Destination::File(path.clone()))).unwrap();
    let large = |second: u32| {
        let mut builder = sample::incident(f64::from(second));
        for backend in &mut builder.backends {
            backend.query = Some(format!("SELECT {} {}", backend.pid, "x".repeat(8 << 20)).into());
        }
        builder
    };
    let count = large(0).backends.len() as u64;
    for second in 0..3 {
        recorder.keep(&stage.poll(large(second)), &report).unwrap();
    }
    assert_eq!((recorder.snapshots(), recorder.losses().is_some()), (3, true));
    let cut =
        format!("{} statements were cut: their snapshots are larger than 32 MB", crate::text::count(count));
    assert_eq!(*messages.lock().unwrap(), [cut], "once");
    recorder.end().unwrap();
    let mut recording = Recording::open(&path).unwrap();
    assert_eq!(recording.moments().len(), 3);
    let view = recording.view(2).unwrap();
    let snapshot = view.snapshot.as_deref().unwrap();
    assert_eq!(snapshot.backends.last_rows().len() as u64, count);
    for backend in snapshot.backends.last_rows().iter() {
        let query = backend.query.as_ref().unwrap().unredacted();
        assert!(
            query.starts_with(&format!("SELECT {} xxx", backend.pid)) && query.len() < 1200,
            "{}",
            query.len()
        );
        assert!(query.contains(" … (cut: 8,") && query.ends_with(" bytes more)"), "{query}");
    }
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
}
