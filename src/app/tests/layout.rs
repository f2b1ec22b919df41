use super::*;
use crate::app::settings::SavedLayout;
use crate::model::finding::AlertWays;

fn left(keys: &str) -> (App, SavedLayout) {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, keys);
    let layout = SavedLayout::of(&app);
    (app, layout)
}

fn begin(text: &str, named: Option<Screen>, builder: Builder) -> App {
    let mut app = App::new(AppSettings::default(), 1.0);
    app.screen = named.unwrap_or_default();
    app.lay_out(SavedLayout::parse(text), named);
    arrive(&mut app, builder.view());
    app
}

#[test]
fn the_next_one_begins_as_the_last_was_left() {
    for keys in ["", "2", "7sj<enter>", "7sj<enter>sj<enter>2sjjj<enter>s<enter>3a", "9bv", "7<enter>w", "m"]
    {
        let (before, layout) = left(keys);
        assert_eq!(SavedLayout::parse(&layout.text()), layout, "{keys}");
        let after = begin(&layout.text(), None, sample::incident(5.0));
        assert_eq!(SavedLayout::of(&after), layout, "{keys}");
        let focus = if keys.is_empty() || keys == "m" { Pane::Findings } else { before.focus };
        assert_eq!(after.focus, focus, "{keys}");
        assert_eq!(after.pane(before.focus).rows, before.pane(before.focus).rows, "{keys}");
    }
}

#[test]
fn filters_and_marks_were_for_that_moment() {
    let (_, layout) = left("7/web<enter> ");
    let after = begin(&layout.text(), None, sample::incident(5.0));
    assert_eq!(after.screen, Screen::Backends);
    assert!(after.pane(Pane::Backends).filter_text.is_empty() && after.pane(Pane::Backends).marks.is_empty());
}

#[test]
fn a_named_screen_rules_and_one_without_tables_gives_way() {
    let mut tasks = app(sample::jobs(0.0));
    drive(&mut tasks, "4");
    let text = SavedLayout::of(&tasks).text();
    assert_eq!(begin(&text, None, sample::jobs(5.0)).screen, Screen::Tasks);
    assert_eq!(begin(&text, Some(Screen::Events), sample::jobs(5.0)).screen, Screen::Events);
    let without = begin(&text, None, sample::incident(5.0));
    assert_eq!((without.screen, without.focus), (Screen::Overview, Pane::Findings));
}

#[test]
fn an_invalid_layout_changes_nothing() {
    let fresh = SavedLayout::of(&begin("", None, sample::incident(0.0)));
    for text in [
        "nonsense",
        "screen = 7",
        "screen = \"moon\"",
        "[sort]\nLocks = \"nothing\"",
        "wrap = \"x\"",
        "sort = 1",
        "\0",
    ] {
        assert_eq!(SavedLayout::of(&begin(text, None, sample::incident(0.0))), fresh, "{text:?}");
    }
}

fn app_with(notify: AlertWays) -> App {
    App::new(AppSettings { target: "prod".to_owned(), notify, ..AppSettings::default() }, 1.0)
}

fn alerts(app: &mut App, builder: Builder) -> Vec<Effect> {
    let effects = arrive(app, builder.view()).effects;
    effects.into_iter().filter(|effect| matches!(effect, Effect::Alert(..) | Effect::Title(_))).collect()
}

fn quiet(now: f64) -> Builder {
    Builder { now, ..Builder::default() }
}

#[test]
fn no_alert_is_sent_unless_configured() {
    let mut app = app_with(AlertWays::default());
    alerts(&mut app, quiet(0.0));
    assert_eq!(alerts(&mut app, sample::incident(1.0)), []);
}

#[test]
fn a_new_critical_finding_alerts_once_even_while_the_display_is_paused() {
    let ways = AlertWays { bell: true, ..AlertWays::default() };
    let mut app = app_with(ways);
    assert_eq!(alerts(&mut app, quiet(0.0)), []);
    drive(&mut app, "p");
    let [Effect::Alert(by, text)] = &alerts(&mut app, sample::incident(1.0))[..] else { panic!("no alert") };
    assert_eq!(*by, ways);
    assert!(text.starts_with("prod: 4312 "), "{text}");
    assert_eq!(alerts(&mut app, sample::incident(2.0)), []);
}

#[test]
fn the_title_shows_a_critical_finding_until_it_ends() {
    let mut app = app_with(AlertWays { title: true, ..AlertWays::default() });
    assert_eq!(alerts(&mut app, quiet(0.0)), [Effect::Title("locktop prod".to_owned())]);
    assert_eq!(alerts(&mut app, quiet(1.0)), []);
    let [Effect::Title(text)] = &alerts(&mut app, sample::incident(2.0))[..] else { panic!("no title") };
    assert!(text.starts_with("CRIT 4312 ") && text.ends_with(" · prod"), "{text}");
    assert_eq!(alerts(&mut app, quiet(3.0)), [Effect::Title("locktop prod".to_owned())]);
}

#[test]
fn text_of_the_server_ends_no_sequence() {
    let mut app = app_with(AlertWays { title: true, ..AlertWays::default() });
    app.settings.target = "a\x07\x1b]0;evil\x1b\\\u{9c}b".to_owned();
    let [Effect::Title(text)] = &alerts(&mut app, quiet(0.0))[..] else { panic!("no title") };
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
