use super::*;
use crate::model::finding::Severity;
use crate::model::thresholds::ExpectedBlocker;

/// From the effects: all expected blockers from then on.
fn expected(effects: &[Effect]) -> Option<Vec<ExpectedBlocker>> {
    effects.iter().find_map(|effect| match effect {
        Effect::Expect(expected) => Some(expected.to_vec()),
        _ => None,
    })
}

fn known(application: &str, user: &str) -> ExpectedBlocker {
    ExpectedBlocker {
        application: Some(application.into()),
        user: Some(user.into()),
        database: Some("app".into()),
        reason: Some("known since 2026-11-20".into()),
        ..ExpectedBlocker::default()
    }
}

fn incident(entry: &ExpectedBlocker) -> View {
    let mut view = sample::incident(0.0).view();
    let mut findings = view.findings.to_vec();
    let root = findings.iter_mut().find(|finding| finding.check == "root_blocker").unwrap();
    (root.severity, root.expected) = (Severity::Info, Some(Box::new(entry.clone())));
    view.findings = Arc::new(findings);
    view
}

fn dialog(app: &App) -> String {
    let dialog = app.dialog.as_ref().unwrap();
    let lines = dialog.lines(200).into_iter();
    lines.map(|line| line.spans.iter().map(|span| span.text.as_str()).collect::<String>() + "\n").collect()
}

#[test]
fn a_root_is_expected_after_a_question_and_nothing_is_asked_of_the_server() {
    for keys in ["I", "2I", "7I", "!I", "<enter>I"] {
        let mut app = app(sample::incident(0.0));
        assert!(slowly(&mut app, keys).is_empty(), "{keys}");
        let said = dialog(&app);
        assert!(
            said.starts_with("entry     [[expected]]\n          application = \"web-3\"\n"),
            "{keys}: {said}"
        );
        assert!(said.contains("          user = \"app\"\n          database = \"app\"\n"), "{said}");
        assert!(said.contains("printed at quit, to be copied into the config file\n"), "{said}");
        assert!(app.dialog.as_ref().unwrap().title().starts_with("Expect 4312 app@web-3"));
        let effects = slowly(&mut app, "y");
        assert_eq!(expected(&effects), Some(vec![known("web-3", "app")]), "{keys}");
        assert!(
            effects.contains(&Effect::Refresh)
                && !effects.iter().any(|effect| matches!(effect, Effect::Order(_)))
        );
        assert!(app.pending_actions.is_empty() && app.dialog.is_none());
    }
}

#[test]
fn nothing_happens_by_any_other_key() {
    for keys in ["I", "I<esc>", "I<enter>", "Iq", "IY", "II", "Iny", "If<enter>", "jI", "C", "Gk"] {
        let mut app = app(sample::incident(0.0));
        assert_eq!(expected(&slowly(&mut app, keys)), None, "{keys}");
    }
    let mut app = app(sample::incident(0.0));
    drive(&mut app, "Iy");
    assert!(app.dialog.is_some(), "it has not been on the screen");
}

#[test]
fn expecting_a_session_that_blocks_no_other_is_refused() {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, "2jjI");
    let text = app.notice.as_ref().unwrap().text.clone();
    assert!(text.contains("marks a blocker as expected") || text.contains("is no root blocker"), "{text}");
}

#[test]
fn the_same_key_takes_it_back() {
    let (entry, other) = (known("web-3", "app"), known("pg_dump", "backup"));
    let mut app = App::new(
        AppSettings { expected: [other.clone(), entry.clone()].into(), ..AppSettings::default() },
        1.0,
    );
    arrive(&mut app, incident(&entry));
    slowly(&mut app, "I");
    assert!(app.dialog.as_ref().unwrap().title().starts_with("No longer expect 4312"));
    assert_eq!(expected(&slowly(&mut app, "y")), Some(vec![other]));
}

#[test]
fn several_marked_rows_are_one_question() {
    let mut app = app(sample::incident(0.0));
    slowly(&mut app, "7/pid=4312|4977<enter>*I");
    let effects = slowly(&mut app, "y");
    let all = expected(&effects).unwrap();
    assert_eq!(all, [known("web-3", "app"), known("prisma", "deploy")]);
}

#[test]
fn expecting_works_in_read_only_mode_but_not_in_a_recording() {
    let mut app = App::new(AppSettings { read_only: true, ..AppSettings::default() }, 1.0);
    arrive(&mut app, sample::incident(0.0).view());
    assert!(expected(&slowly(&mut app, "Iy")).is_some());
    assert!(slowly(&mut app, "K").is_empty() && app.dialog.is_none());

    let mut app = App::new(AppSettings { read_only: true, ..AppSettings::default() }, 1.0);
    app.replay_at(None);
    arrive(&mut app, sample::incident(0.0).view());
    assert_eq!(expected(&slowly(&mut app, "Iy!I")), None);
    assert!(app.dialog.is_none());
    assert!(
        !super::super::help::lines(&app, 120, "")
            .iter()
            .any(|line| { line.spans.iter().any(|span| span.text.contains("mark a blocker as expected")) })
    );
}

#[test]
fn a_session_that_cannot_be_distinguished_cannot_be_expected() {
    let mut builder = sample::Builder::default();
    builder.session(7, "", crate::model::backend::State::IdleInTransaction, 100.0, "").user = None;
    builder.lock(7, sample::advisory(1), LockMode::Exclusive, None);
    builder.session(8, "app@web", crate::model::backend::State::Active, 50.0, "SELECT 1");
    builder.lock(8, sample::advisory(1), LockMode::Exclusive, Some(50.0));
    for row in &mut builder.backends {
        if row.pid == 7 {
            (row.user, row.application) = (None, None);
        }
    }
    let mut app = app(builder);
    slowly(&mut app, "I");
    assert!(app.dialog.is_none());
    assert!(app.notice.as_ref().unwrap().text.contains("nothing known distinguishes it from other sessions"));
}
