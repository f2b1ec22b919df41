use super::*;
use crate::model::past::{Moment, PastView, TimeStep};

fn keeping() -> App {
    let mut app = app(Builder { now: 100.0, ..sample::incident(100.0) });
    app.settings.history = true;
    let mut newest = View::clone(app.view.as_ref().unwrap());
    newest.id = 101;
    arrive(&mut app, newest);
    app
}

fn past_view(second: u32) -> Arc<PastView> {
    let mut view = sample::incident(f64::from(second)).view();
    view.id = u64::from(second) + 1;
    let moments = (0..101u32).map(|at| Moment {
        id: u64::from(at) + 1,
        at: sample::at(f64::from(at)),
        waiting: 3,
        incident: None,
    });
    Arc::new(PastView { view: Arc::new(view), place: second as usize, moments: moments.collect() })
}

/// The time of the shown snapshot, in seconds since the start.
fn time(app: &App) -> i64 {
    let taken = app.view.as_ref().unwrap().snapshot.as_ref().unwrap().taken_at;
    (taken - sample::at(0.0)).num_seconds()
}

fn answer(app: &mut App, past: Option<Arc<PastView>>) -> Vec<Effect> {
    app.update(Message::Past(Ok(past))).effects
}

#[test]
fn each_key_requests_its_snapshot_and_escape_returns_to_live() {
    for (key, step) in [
        ("[", TimeStep::Snapshots(-1)),
        ("{", TimeStep::Seconds(-60)),
        ("(", TimeStep::IncidentBefore),
        (")", TimeStep::NextIncident),
        ("}", TimeStep::Seconds(60)),
        ("]", TimeStep::Snapshots(1)),
        ("tworst<enter>", TimeStep::Worst),
        ("t-30s<enter>", TimeStep::Time(sample::at(70.0))),
        ("t14:03:21<enter>", TimeStep::Time(sample::at(50.999))),
    ] {
        let mut app = keeping();
        assert_eq!(drive(&mut app, key), [Effect::Go { from: 101, step }], "{key}");
        assert_eq!(time(&app), 100, "the shown snapshot stays until the requested one arrives");
        answer(&mut app, Some(past_view(99)));
        assert_eq!((time(&app), app.past.is_some()), (99, true));
        assert_eq!(drive(&mut app, "["), [Effect::Go { from: 100, step: TimeStep::Snapshots(-1) }]);
        answer(&mut app, Some(past_view(98)));
        drive(&mut app, "<esc>");
        assert_eq!((time(&app), app.past.is_none(), app.latest.is_none()), (100, true, true));
    }
}

#[test]
fn keys_that_are_faster_than_the_history_add_up() {
    let mut app = keeping();
    assert_eq!(drive(&mut app, "[[[[").len(), 1, "one is on its way");
    assert_eq!(
        answer(&mut app, Some(past_view(99))),
        [Effect::Go { from: 100, step: TimeStep::Snapshots(-3) }]
    );
    assert_eq!(drive(&mut app, "{"), []);
    assert_eq!(
        answer(&mut app, Some(past_view(96))),
        [Effect::Go { from: 97, step: TimeStep::Seconds(-60) }]
    );
    assert_eq!(answer(&mut app, Some(past_view(36))), []);
    assert_eq!(time(&app), 36);
}

#[test]
fn escape_is_faster_than_the_history() {
    let mut app = keeping();
    drive(&mut app, "[<esc>");
    assert_eq!(answer(&mut app, Some(past_view(99))), []);
    assert_eq!((time(&app), app.past.is_none()), (100, true), "it is not wanted any more");
    assert_eq!(drive(&mut app, "{<esc>[").len(), 1);
    let next = answer(&mut app, Some(past_view(40)));
    assert_eq!((next, time(&app)), (vec![Effect::Go { from: 101, step: TimeStep::Snapshots(-1) }], 100));
    answer(&mut app, Some(past_view(99)));
    assert_eq!(time(&app), 99);
}

#[test]
fn views_that_arrive_during_a_past_snapshot_are_kept_for_live() {
    let mut app = keeping();
    drive(&mut app, "{");
    answer(&mut app, Some(past_view(40)));
    let mut newer = sample::incident(107.0).view();
    newer.id = 108;
    arrive(&mut app, newer);
    assert_eq!(time(&app), 40);
    let down =
        ConnectionState::Down { reason: "gone".into(), attempt: 1, wait: std::time::Duration::from_secs(1) };
    let lost = View { link: down, ..View::clone(app.latest.as_ref().unwrap()) };
    arrive(&mut app, lost);
    assert_eq!((time(&app), app.is_stale()), (40, false), "a past snapshot is never stale");
    assert_eq!(drive(&mut app, "[").len(), 1, "steps work while the connection is down");
    answer(&mut app, None);
    assert_eq!((time(&app), app.is_stale()), (107, true));
}

#[test]
fn nothing_acts_in_the_past() {
    let mut app = keeping();
    drive(&mut app, "[");
    answer(&mut app, Some(past_view(29)));
    for key in ["K", "C", "R", "U", "E", "T", "D", "X", "p", "<enter>K", "!K"] {
        assert_eq!(drive(&mut app, key), [], "{key}");
        assert!(app.dialog.is_none() && !app.paused, "{key}");
        assert_eq!(app.notice.as_ref().unwrap().text, "this is 14:03:00: Esc returns to live", "{key}");
        app.pages.clear();
    }
    drive(&mut app, "<esc>K");
    assert!(app.dialog.is_some(), "now it asks");
}

#[test]
fn screens_filters_and_details_work_as_live() {
    let mut app = keeping();
    drive(&mut app, "7/web<enter>");
    let live = app.pane(Pane::Backends).rows.len();
    drive(&mut app, "{");
    answer(&mut app, Some(past_view(40)));
    assert_eq!(app.pane(Pane::Backends).rows.len(), live);
    drive(&mut app, "<enter>");
    assert!(matches!(app.pages.last(), Some(Page::Detail { .. })));
    assert_eq!(drive(&mut app, "[").len(), 1, "also from a page");
    answer(&mut app, Some(past_view(39)));
    assert!(matches!(app.pages.last(), Some(Page::Detail { .. })));
    drive(&mut app, "<esc>");
    assert!(app.past.is_some() && app.pages.is_empty(), "a page is closed first");
    drive(&mut app, "<esc>");
    assert!(app.past.is_none());
    assert_eq!(app.pane(Pane::Backends).filter_text, "web", "the filter stays");
}

#[test]
fn an_invalid_time_is_reported_and_changes_nothing() {
    let mut app = keeping();
    assert_eq!(drive(&mut app, "tx"), []);
    assert!(app.prompt.as_ref().unwrap().error.as_ref().unwrap().contains("14:02"));
    assert_eq!(drive(&mut app, "<enter>"), []);
    assert!(app.notice.as_ref().unwrap().text.contains("worst"));
    assert_eq!(drive(&mut app, "t9:<esc>"), []);
    assert!(app.prompt.is_none() && app.past.is_none());
    drive(&mut app, "[");
    answer(&mut app, Some(past_view(40)));
    drive(&mut app, "t<enter>");
    assert!(app.past.is_none(), "an empty time returns to live");
    app.update(Message::Past(Err("the history begins here".to_owned())));
    assert_eq!(app.notice.as_ref().unwrap().text, "the history begins here");
}

#[test]
fn without_a_history_the_keys_report_that_it_is_off() {
    let mut app = keeping();
    app.settings.history = false;
    for key in ["[", "]", "{", "}", "(", ")", "t"] {
        assert_eq!(drive(&mut app, key), []);
        assert!(app.notice.as_ref().unwrap().text.contains("[history]"), "{key}");
    }
}

/// The mark on the time line does not show what the incident was.
#[test]
fn a_jump_to_an_incident_reports_what_it_was() {
    use crate::model::event::{EventBody, EventKind, Events};
    use crate::model::finding::Severity;
    use crate::model::past::Incident;
    let mut events = Events::default();
    let body = |kind, what| EventBody::new(sample::at(40.0), kind, Severity::Warning, what);
    events.extend(sample::at(39.0), [body(EventKind::RootBegun, "an older root")]);
    let (first, second) =
        (body(EventKind::RootBegun, "4312 began"), body(EventKind::TaskOrphaned, "an orphan"));
    events.extend(sample::at(40.0), [body(EventKind::ActionAsked, "asked"), first, second]);
    let to = |key, incident| {
        let mut app = keeping();
        let past = past_view(40);
        let mut moments = past.moments.to_vec();
        moments[40].incident = incident;
        let view = View { events: Arc::new(events.clone()), ..View::clone(&past.view) };
        drive(&mut app, key);
        answer(
            &mut app,
            Some(Arc::new(PastView { view: Arc::new(view), place: 40, moments: moments.into() })),
        );
        app.notice.map(|notice| notice.text)
    };
    assert_eq!(to("(", Some(Incident::Begun)).as_deref(), Some("4312 began · 1 more"));
    assert_eq!(to(")", Some(Incident::Action)).as_deref(), Some("asked"));
    assert_eq!(
        to("(", Some(Incident::NoAnswer)).as_deref(),
        Some("the server did not answer after this snapshot")
    );
    assert_eq!(to("[", Some(Incident::Begun)), None, "a single step shows no notice");
}

#[test]
fn an_event_opens_its_moment_and_selects_its_row() {
    use crate::model::event::{EventBody, EventKind, Events};
    use crate::model::finding::{Severity, Subject};
    let mut app = keeping();
    let mut events = Events::default();
    let backend = app.context().unwrap().backend(4312).unwrap().id();
    let body = EventBody::new(sample::at(40.0), EventKind::RootBegun, Severity::Warning, "began");
    events.extend(sample::at(40.0), [EventBody { subject: Some(Subject::Backend(backend)), ..body }]);
    let events = Arc::new(events);
    let with_events = |view: &View| View { events: Arc::clone(&events), ..view.clone() };
    let newest = with_events(app.view.as_ref().unwrap());
    arrive(&mut app, newest);
    assert_eq!(
        drive(&mut app, "8<enter>"),
        [Effect::Go { from: 101, step: TimeStep::Seen(sample::at(40.0)) }]
    );
    let past = past_view(40);
    let past = PastView { view: Arc::new(with_events(&past.view)), ..PastView::clone(&past) };
    answer(&mut app, Some(Arc::new(past)));
    assert_eq!((time(&app), app.screen, selected_pid(&app)), (40, Screen::Chains, Some(4312)));
    drive(&mut app, "<esc><esc>");
    assert_eq!((time(&app), app.screen), (100, Screen::Events), "back to live, and to the events");
    // An event older than the history opens in the newest snapshot.
    drive(&mut app, "<enter>");
    app.update(Message::Past(Err("the history begins here".to_owned())));
    assert_eq!((time(&app), app.screen), (100, Screen::Chains));
}

/// An object that has ended is visible only in the snapshot before, even if the newest snapshot reported the end.
#[test]
fn an_event_of_an_end_opens_the_snapshot_before_it() {
    use crate::model::event::{EventBody, EventKind, Events};
    use crate::model::finding::Severity;
    let mut app = keeping();
    let seen = app.view.as_ref().unwrap().snapshot.as_ref().unwrap().taken_at;
    let mut events = Events::default();
    events.extend(
        seen,
        [EventBody::new(seen, EventKind::RootEnded, Severity::Info, "stopped blocking others")],
    );
    let newest = View { events: Arc::new(events), ..(**app.view.as_ref().unwrap()).clone() };
    arrive(&mut app, newest);
    assert_eq!(drive(&mut app, "8<enter>"), [Effect::Go { from: 101, step: TimeStep::Before(seen) }]);
}

#[test]
fn a_recording_is_played_and_nothing_acts_in_it() {
    let mut app = App::new(AppSettings { read_only: true, ..AppSettings::default() }, 1.0);
    app.replay_at(None);
    answer(&mut app, Some(past_view(40)));
    assert_eq!((time(&app), app.is_stale()), (40, false));
    assert_eq!(drive(&mut app, "p"), [Effect::Play(Some(1.0))]);
    assert_eq!(drive(&mut app, "+"), [Effect::Play(Some(2.0))]);
    assert_eq!(drive(&mut app, "---"), [Some(1.0), Some(0.5), Some(0.25)].map(Effect::Play));
    assert_eq!(drive(&mut app, "-"), [Effect::Play(Some(0.25))], "no slower than that");
    assert_eq!(drive(&mut app, "p+"), [Effect::Play(None), Effect::Play(None)]);
    // A snapshot that arrives during playback.
    answer(&mut app, Some(past_view(41)));
    assert_eq!(drive(&mut app, "["), [Effect::Go { from: 42, step: TimeStep::Snapshots(-1) }]);
    answer(&mut app, Some(past_view(40)));
    assert_eq!(drive(&mut app, "K"), []);
    assert_eq!(app.notice.as_ref().unwrap().text, "this is a recording: K (terminate) does nothing here");
    drive(&mut app, "<esc>");
    assert_eq!((time(&app), app.past.is_some()), (40, true), "there is no now to go back to");
    assert_eq!(
        drive(&mut app, "t-10s<enter>"),
        [Effect::Go { from: 41, step: TimeStep::Time(sample::at(90.0)) }]
    );
    answer(&mut app, None);
    assert_eq!(app.notice.as_ref().unwrap().text, "the recording ends here");
}

#[test]
fn a_time_before_the_first_snapshot_is_reported() {
    let mut app = keeping();
    for (typed, reported) in [("t-30s<enter>", None), ("t-90s<enter>", Some("the history begins here"))] {
        drive(&mut app, typed);
        answer(&mut app, Some(past_view(70)));
        assert_eq!(app.notice.as_ref().map(|notice| &*notice.text), reported, "{typed}");
        drive(&mut app, "<esc>");
    }
}

#[test]
fn the_help_is_that_of_a_recording() {
    let text = |app: &App| {
        let lines = crate::app::help::lines(app, 200, "").into_iter();
        lines
            .map(|line| line.spans.iter().map(|span| &*span.text).collect::<String>().trim().to_owned())
            .collect::<Vec<_>>()
    };
    let has = |lines: &[String], wanted: &str| lines.iter().any(|line| line.contains(wanted));
    let live = text(&keeping());
    for wanted in ["LIVE 1s", "PAST 4m29s", "freeze the screen", "Esc returns to live", "TLS", "▲ 631 of 900"]
    {
        assert!(has(&live, wanted), "{wanted}");
    }
    assert!(!has(&live, "PAUSED ×1"));
    let mut app = App::new(AppSettings { read_only: true, ..AppSettings::default() }, 1.0);
    app.replay_at(None);
    answer(&mut app, Some(past_view(40)));
    let recording = text(&app);
    for wanted in [
        "PAUSED ×1",
        "PLAYS ×4",
        "p                play or pause",
        "+ =              double the speed",
        "-                halve the speed",
        "empty: the end",
        "a session began to block others",
        "This recording",
        "recorded as",
    ] {
        assert!(has(&recording, wanted), "{wanted} is not in {recording:#?}");
    }
    for unwanted in [
        "LIVE 1s",
        "PAST",
        "returns to now",
        "refresh",
        "Actions: each asks first",
        "This connection",
        "This role",
        "TLS",
    ] {
        assert!(!has(&recording, unwanted), "{unwanted} is in {recording:#?}");
    }
}

#[test]
fn the_history_is_saved_to_the_given_file() {
    let mut app = keeping();
    app.settings.target = "app@db/1".to_owned();
    assert_eq!(drive(&mut app, "o<enter>"), [Effect::Save("app-db-1-20261120T140411Z.ltr".into())]);
    assert_eq!(drive(&mut app, "o<ctrl-u>/tmp/x.ltr<enter>"), [Effect::Save("/tmp/x.ltr".into())]);
    assert_eq!(drive(&mut app, "o<esc>"), []);
    app.update(Message::Saved("900 snapshots are in /tmp/x.ltr".to_owned()));
    assert_eq!(app.notice.take().unwrap().text, "900 snapshots are in /tmp/x.ltr");
    app.settings.history = false;
    assert_eq!(drive(&mut app, "o"), []);
    assert!(app.notice.as_ref().unwrap().text.contains("[history]"));
    app.replay_at(None);
    for key in ["o", "n"] {
        assert_eq!(drive(&mut app, key), []);
        assert!(app.prompt.is_none() && app.notice.as_ref().unwrap().text.contains("a recording"), "{key}");
    }
}
