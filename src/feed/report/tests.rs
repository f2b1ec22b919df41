use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Offset;

use super::*;
use crate::feed::EventSender;
use crate::feed::record::{Destination, Options, Recorder, Rotation};
use crate::model::backend::{BackendId, State};
use crate::model::blame::BlamePeriod;
use crate::model::event::{EventBody, ExternalEvent};
use crate::model::finding::Subject;
use crate::model::lock::LockMode;
use crate::model::lock_name::LockNames;
use crate::model::task::JobState;
use crate::model::thresholds::Thresholds;
use crate::model::zone::Zone;
use crate::output::report::{Branch, LARGEST, Style, html, json, markdown};
use crate::recording::container::RecordingInfo;
use crate::sample::{self, at};

mod page;

const STYLE: Style = Style { top: 10, zone: Zone::Fixed(OFFSET) };
const OFFSET: chrono::FixedOffset = match chrono::FixedOffset::east_opt(3600) {
    Some(offset) => offset,
    None => panic!("an hour"),
};

/// Records these seconds with a recorder that starts with them.
fn record(path: &Path, seconds: std::ops::Range<i32>, scene: impl Fn(i32) -> sample::Builder) {
    let about = RecordingInfo {
        program: "locktop test".to_owned(),
        target: "app@db:5432 <prod>".to_owned(),
        refresh: 1.0,
        ..RecordingInfo::default()
    };
    let options = Options {
        on_trouble: None,
        place: Destination::File(path.to_owned()),
        sync: Duration::from_secs(1),
        rotation: Rotation::default(),
        about,
    };
    let mut recorder = Recorder::open(options).unwrap();
    let mut view_builder = ViewBuilder::new(TargetId(0), Thresholds::default(), LockNames::default());
    let (sender, mut reader) = EventSender::new();
    for second in seconds {
        if second == 40 {
            let subject = Subject::Backend(BackendId { pid: 4288, backend_start: Some(at(-3600.0)) });
            sender.send(ExternalEvent {
                kind: EventKind::ActionResult,
                severity: Severity::Info,
                text: "terminated 4288 app@billing: its session ended".to_owned(),
                subject: Some(subject),
            });
            view_builder.events_received(reader.rest());
        }
        let past = view_builder.past();
        view_builder.snapshot_taken(scene(second).snapshot());
        recorder.write(&view_builder.observation(past)).unwrap();
    }
    recorder.end().unwrap();
}

fn recorded(folder: &Path) -> (PathBuf, Recording) {
    let path = folder.join("incident.ltr");
    record(&path, 0..180, sample::blame);
    let recording = Recording::open(&path).unwrap();
    (path, recording)
}

fn waiting(view: &View) -> Tree {
    let branch = |node: &crate::model::wait_graph::TreeNode| Branch {
        depth: u16::from(node.parent.is_some()),
        who: who(view, node.party),
        ..Branch::default()
    };
    Tree {
        lines: vec![format!("{} wait", view.graph.waiting)],
        branches: view.graph.tree.nodes.iter().map(branch).collect(),
    }
}

fn has_all(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[test]
fn a_report_shows_the_root_blocker_its_cost_statements_and_ending() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut recording) = recorded(folder.path());
    let report = of(&mut recording, 0..180, None, waiting).unwrap();
    let text = markdown(&report, STYLE);
    has_all(
        &text,
        &[
            "15:04:01–15:05:30: 4312 app@billing (billing idle in xact, UPDATE accounts SET balance = balance - ? WHERE id = ?) on accounts \
             cost 24m18s",
            "it was ongoing at the end",
            "In total, sessions waited 38m56s ± 14s in 39 waits",
            "terminated 4288 app@billing: its session ended",
            "SELECT balance FROM accounts WHERE id = 42",
            "As seen in snapshots: statements between",
            "26 waited.",
            "15:04:00 UPDATE accounts SET balance = balance - 100 WHERE id = 42",
            "26 wait",
            "idle\\_in\\_transaction\\_session\\_timeout",
            "## Limits of this report",
        ],
    );
    let page = html(&report, STYLE);
    has_all(&page, &["<svg ", "4312 app@billing", "app@db:5432 &lt;prod&gt;"]);
    assert!(page.len() < 40_000, "{}", page.len());
    let document: serde_json::Value = serde_json::from_str(&json(&report).unwrap()).unwrap();
    assert_eq!(document["blame"]["waits"], 39);
    assert_eq!(document["worst"]["waiting"], 26);
    assert_eq!(document["actions"][0]["text"], "terminated 4288 app@billing: its session ended");
    assert_eq!(document["looks"], 180);
}

#[test]
fn a_part_of_a_recording_has_the_waits_of_that_part() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut recording) = recorded(folder.path());
    let whole = of(&mut recording, 0..180, None, waiting).unwrap();
    let begin = of(&mut recording, 0..58, None, waiting).unwrap();
    assert!(begin.blame.table.episodes.iter().all(|episode| [4288, 4295].contains(&episode.pid)));
    assert!((begin.blame.total(BlamePeriod::All).seconds - 357.0).abs() < 4.0);
    let first = whole.blame.table.episodes.iter().find(|episode| episode.pid == 4290).unwrap();
    let places = of_episode(&mut recording, first.number).unwrap().unwrap();
    assert_eq!(places, 30..150);
    let part = of(&mut recording, places, None, waiting).unwrap();
    let again = part.blame.table.episodes.iter().find(|episode| episode.pid == 4290).unwrap();
    assert_eq!((again.sums, again.begin), (first.sums, first.begin));
    assert_eq!(of_episode(&mut recording, 999).unwrap(), None);

    // Another recorder continues the file after a gap.
    record(&path, 240..260, |second| {
        let mut scene = sample::Builder { now: f64::from(second), ..sample::Builder::default() };
        let since = f64::from(second) - 230.0;
        scene.session(50, "app@late", State::IdleInTransaction, since, "UPDATE t SET a = 1");
        scene.lock(50, sample::relation(9), LockMode::AccessExclusive, None);
        scene.session(51, "app@web", State::Active, since, "SELECT 1");
        scene.lock(51, sample::relation(9), LockMode::AccessShare, Some(since));
        scene
    });
    let mut recording = Recording::open(&path).unwrap();
    let both = of(&mut recording, 0..200, None, waiting).unwrap();
    assert_eq!(both.holes, [Hole { from: at(179.0), to: at(240.0) }]);
    assert!(
        (both.blame.total(BlamePeriod::All).seconds - whole.blame.total(BlamePeriod::All).seconds - 19.0)
            .abs()
            < 1e-6
    );
    let numbers: Vec<u64> = both.blame.table.episodes.iter().map(|episode| episode.number).collect();
    let unique: std::collections::BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(numbers.len(), unique.len(), "the numbers are unique: {numbers:?}");
    let sum: f64 = both.blame.table.episodes.iter().map(|episode| episode.sums.seconds).sum();
    assert!((sum - both.blame.total(BlamePeriod::All).seconds).abs() < 1e-6);
}

#[test]
fn waits_from_before_the_first_snapshot_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut recording) = recorded(folder.path());
    let part = of(&mut recording, 30..58, None, waiting).unwrap();
    assert_eq!((part.blame.before.sessions, part.blame.before.longest), (11, Some(25.0)));
    let words = "11 sessions were already waiting at the first snapshot, the longest for 25s";
    has_all(&markdown(&part, STYLE), &[words]);
    let document: serde_json::Value = serde_json::from_str(&json(&part).unwrap()).unwrap();
    assert_eq!(document["blame"]["before"]["sessions"], 11);
    let whole = of(&mut recording, 0..180, None, waiting).unwrap();
    assert!(!markdown(&whole, STYLE).contains("already waiting"));
}

#[test]
fn the_reason_for_the_waits_at_the_worst_moment_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut recording) = recorded(folder.path());
    let report = of(&mut recording, 0..180, None, waiting).unwrap();
    let why = &report.worst.as_ref().unwrap().why;
    assert_eq!(why.iter().map(|why| &*why.who).collect::<Vec<_>>(), ["200 app@web", "300 app@web"]);
    has_all(
        &why[0].said.join(" "),
        &["RowExclusive on accounts", "4312 app@billing holds AccessExclusive on it"],
    );
    has_all(&markdown(&report, STYLE), &["for the first waiter of each lock", "300 app@web: "]);
}

/// Snapshots are not evenly spaced, and a gap is not a time without waits.
#[test]
fn a_column_without_a_snapshot_repeats_the_one_before_except_in_a_gap() {
    let with = |holes: &[Hole]| {
        let mut columns = columns(at(0.0), at(5.0), 5);
        for place in [0, 1, 3, 4] {
            (columns[place].waiting, columns[place].is_known) = (7, true);
        }
        fill(&mut columns, holes);
        columns.iter().map(|column| column.is_known.then_some(column.waiting)).collect::<Vec<_>>()
    };
    assert_eq!(with(&[]), [Some(7); 5]);
    let hole = with(&[Hole { from: at(1.5), to: at(3.2) }]);
    assert_eq!(hole, [Some(7), Some(7), None, Some(7), Some(7)]);
}

#[test]
fn task_problems_are_reported_with_how_they_ended() {
    let view = sample::jobs(0.0).view();
    let row = |state: JobState| {
        let row = view.tasks.rows.iter().find(|row| row.state == state);
        row.map_or_else(|| panic!("{state:?}"), |row| row.task)
    };
    let orphan = row(JobState::Orphan);
    let mut tasks = TaskIncidents::default();
    tasks.begin(&view);
    let event = |second: f64, kind, severity, (who, what): (&str, &str), task| {
        let subject = Some(Subject::Task(task));
        let body = EventBody { who: who.into(), subject, ..EventBody::new(at(second), kind, severity, what) };
        Event { number: 0, seen: at(second), body }
    };
    let recovered = event(
        5.0,
        EventKind::TaskRecovered,
        Severity::Warning,
        ("报表生成任务", "was recovered by ops, lost on worker-7"),
        orphan,
    );
    tasks.event(&recovered);
    tasks.event(&event(6.0, EventKind::TaskEnded, Severity::Info, ("sync", "completed on worker-1"), orphan));
    tasks.event(&event(
        7.0,
        EventKind::TaskEnded,
        Severity::Warning,
        ("sync", "failed on worker-1: full"),
        orphan,
    ));
    let all = tasks.end(Some(&view));
    let of = |text: &str| {
        let found = all.iter().find(|task| task.text.contains(text));
        found.unwrap_or_else(|| panic!("{text} in {all:#?}")).ended.clone()
    };
    assert_eq!(
        of("was orphan already"),
        Some((at(5.0), "was recovered by ops, lost on worker-7".to_owned()))
    );
    assert_eq!(of("was slow already"), Some((at(0.0), "slow at the end".to_owned())));
    assert_eq!(of("failed on worker-1: full"), None);
    assert!(!all.iter().any(|task| task.text.contains("completed")), "{all:#?}");

    // Actions of any origin are listed under actions.
    let mut report = IncidentReport::default();
    note(&mut report, &recovered);
    assert_eq!(report.actions[0].text, "报表生成任务 was recovered by ops, lost on worker-7");
    report.tasks = all;
    let text = markdown(&report, STYLE);
    has_all(
        &text,
        &[
            "## Tasks",
            "was orphan already; was recovered by ops, lost on worker-7 (15:02:36)",
            "slow at the end",
        ],
    );
}

#[test]
fn settings_are_suggested_only_if_they_would_have_helped() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut recording) = recorded(folder.path());
    let mut report = of(&mut recording, 0..180, None, waiting).unwrap();
    let names = |report: &IncidentReport, (timeout, log): (f64, bool)| {
        let mut view = sample::blame(100).view();
        let snapshot = Arc::make_mut(view.snapshot.as_mut().unwrap());
        let server = &mut Arc::make_mut(snapshot.server.rows_mut())[0];
        (server.deadlock_timeout, server.log_lock_waits) = (Some(timeout), Some(log));
        let found = ddl::settings(report, &view);
        found.iter().map(|setting| setting.name).filter(|name| name.contains("lock_")).collect::<Vec<_>>()
    };
    assert_eq!(names(&report, (1.0, true)), [""; 0]);
    assert_eq!(names(&report, (1.0, false)), ["log_lock_waits"]);
    assert_eq!(names(&report, (5.0, true)), [""; 0], "there was no deadlock");
    let episode = &mut Arc::make_mut(&mut report.blame.table).episodes[0];
    Arc::make_mut(episode).ending = crate::model::blame::Ending::Deadlock;
    assert_eq!(names(&report, (5.0, true)), ["deadlock_timeout"]);
    assert_eq!(names(&report, (1.0, true)), [""; 0]);
}

/// T1, with `LOCKTOP_LONG=1 cargo test --release --lib feed::report -- --nocapture`: the time for a report of an hour.
#[test]
#[expect(clippy::print_stdout, reason = "the figures of the long run")]
fn an_hour_is_reported() {
    let is_long = std::env::var_os("LOCKTOP_LONG").is_some();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hour.ltr");
    record(&path, 0..if is_long { 3600 } else { 200 }, |second| {
        let mut scene = sample::blame(second % 180);
        let crowd = sample::crowd(100, 400, f64::from(second));
        scene.now = f64::from(second);
        scene.backends.extend(crowd.backends);
        scene.locks.extend(crowd.locks);
        scene
    });
    let bytes = path.metadata().unwrap().len();
    let started = crate::clock::monotonic();
    let mut recording = Recording::open(&path).unwrap();
    let snapshots = recording.moments().len();
    let report = of(&mut recording, 0..snapshots, None, waiting).unwrap();
    let (page, text) = (html(&report, STYLE), markdown(&report, STYLE));
    assert!(page.len() <= LARGEST && text.len() <= LARGEST && report.damaged == 0);
    if is_long {
        let took = started.elapsed().as_secs_f64();
        println!("{snapshots} snapshots in {bytes} bytes: {took:.2} s, {} bytes of HTML", page.len());
    }
}

#[test]
fn gaps_between_snapshots_are_found() {
    let times: Vec<_> = [0.0, 1.0, 2.5, 60.0, 61.0].map(at).into();
    assert_eq!(holes(&times, 1.0), [Hole { from: at(2.5), to: at(60.0) }]);
    assert_eq!(holes(&times, 30.0), []);
}

/// A recording of a release without blame: the costs are computed from its snapshots.
#[test]
fn an_older_recording_has_a_report_too() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/format-1.ltr");
    let mut recording = Recording::open(&path).unwrap();
    let report = of(&mut recording, 0..70, None, waiting).unwrap();
    let total = report.blame.total(BlamePeriod::All);
    assert!(report.is_counted_anew && total.seconds > 100.0, "{total:?}");
    has_all(&markdown(&report, STYLE), &["they were computed from its snapshots", "PostgreSQL 17.2 primary"]);
    assert!(of_episode(&mut recording, 1).unwrap().is_some());
}

/// Any part of a file gives a report of what was read, or an error.
#[test]
fn a_file_that_was_cut_or_damaged_has_a_report_of_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = recorded(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    for part in 1..20 {
        std::fs::write(&path, &bytes[..bytes.len() * part / 20]).unwrap();
        let Ok(mut recording) = Recording::open(&path) else { continue };
        let snapshots = recording.moments().len();
        let report = of(&mut recording, 0..snapshots, None, waiting);
        assert_eq!(report.is_ok(), snapshots > 0, "{part}");
        let mut damaged = bytes.clone();
        damaged[bytes.len() * part / 20] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        let mut recording = Recording::open(&path).unwrap();
        let snapshots = recording.moments().len();
        let report = of(&mut recording, 0..snapshots, None, waiting).unwrap();
        assert!(report.damaged <= 256, "{}", report.damaged);
    }
}

#[test]
fn a_report_without_literals_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.ltr");
    record(&path, 0..30, |second| {
        let mut scene = sample::blame(second);
        for backend in &mut scene.backends {
            backend.query =
                Some("UPDATE accounts SET note = 's3cret' WHERE id = 4711 /*controller='s3cret'*/".into());
        }
        scene
    });
    let mut recording = Recording::open(&path).unwrap();
    let text = |recording: &mut Recording, redaction| {
        let report = of(recording, 0..30, redaction, waiting).unwrap();
        markdown(&report, STYLE) + &html(&report, STYLE) + &json(&report).unwrap()
    };
    assert!(text(&mut recording, None).contains("s3cret"));
    for redaction in [Redaction::Literals, Redaction::Queries] {
        let text = text(&mut recording, Some(redaction));
        assert!(!text.contains("s3cret") && !text.contains("4711"), "{redaction:?}: {text}");
        assert!(!text.contains("UPDATE accounts") || redaction == Redaction::Literals);
    }
}

/// Names and statements can contain any text.
#[test]
fn hostile_text_is_text_and_no_report_is_too_large() {
    let hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'|`](http://x) \u{1b}[31m\u{202e}\n    - # \\ ".repeat(40);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.ltr");
    record(&path, 0..12, |second| {
        let now = f64::from(second);
        let mut scene = sample::Builder { now, ..sample::Builder::default() };
        for number in 0..150 {
            let root = scene.session(1000 + number, "app@x", State::IdleInTransaction, now + 5.0, &hostile);
            root.application = Some(format!("{number}{hostile}").into());
            scene.lock(
                1000 + number,
                sample::advisory(number.into()),
                crate::model::lock::LockMode::Exclusive,
                None,
            );
            scene.session(2000 + number, "app@y", State::Active, now + 5.0, &hostile);
            scene.lock(
                2000 + number,
                sample::advisory(number.into()),
                crate::model::lock::LockMode::Exclusive,
                Some(now + 5.0),
            );
        }
        scene
    });
    let mut recording = Recording::open(&path).unwrap();
    let report = of(&mut recording, 0..12, None, waiting).unwrap();
    for top in [1, 10, 100] {
        let style = Style { top, zone: chrono::Utc.fix().into() };
        let page = html(&report, style);
        assert!(page.len() <= LARGEST, "{top}: {}", page.len());
        let bare = page.replace("<style>", "").replace("</style>", "");
        for forbidden in ["<script", "<img", "<link", "<a ", "http://", "https://", "src=", "onerror=\""] {
            let is_markup = bare.match_indices(forbidden).any(|(at, _)| bare[at..].starts_with('<'));
            assert!(!is_markup, "{forbidden}");
        }
        page::is_well_formed(&page);
        let text = markdown(&report, style);
        assert!(text.len() <= LARGEST, "{top}: {}", text.len());
        for text in [&page, &text] {
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
        }
        let lines = text.lines().filter(|line| !line.starts_with("    "));
        assert!(lines.clone().all(|line| !line.contains("<script") && !line.contains("://")));
        let rows = text.lines().filter(|line| line.starts_with("| "));
        assert!(rows.clone().count() > 2 && rows.clone().all(|row| row.ends_with(" |")));
    }
}
