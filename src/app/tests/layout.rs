use super::*;
use crate::app::layout::Layout;

fn left(keys: &str) -> (App, Layout) {
    let mut app = app(sample::incident(0.0));
    drive(&mut app, keys);
    let layout = Layout::of(&app);
    (app, layout)
}

fn begin(text: &str, named: Option<Screen>, builder: Builder) -> App {
    let mut app = App::new(Settings::default(), 1.0);
    app.screen = named.unwrap_or_default();
    app.lay_out(Layout::parse(text), named);
    arrive(&mut app, builder.view());
    app
}

#[test]
fn the_next_one_begins_as_the_last_was_left() {
    for keys in ["", "2", "7sj<enter>", "7sj<enter>sj<enter>2sjjj<enter>s<enter>3a", "9bv", "7<enter>w", "m"]
    {
        let (before, layout) = left(keys);
        assert_eq!(Layout::parse(&layout.text()), layout, "{keys}");
        let after = begin(&layout.text(), None, sample::incident(5.0));
        assert_eq!(Layout::of(&after), layout, "{keys}");
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
    let text = Layout::of(&tasks).text();
    assert_eq!(begin(&text, None, sample::jobs(5.0)).screen, Screen::Tasks);
    assert_eq!(begin(&text, Some(Screen::Events), sample::jobs(5.0)).screen, Screen::Events);
    let without = begin(&text, None, sample::incident(5.0));
    assert_eq!((without.screen, without.focus), (Screen::Overview, Pane::Findings));
}

#[test]
fn what_nobody_here_wrote_changes_nothing() {
    let fresh = Layout::of(&begin("", None, sample::incident(0.0)));
    for text in [
        "nonsense",
        "screen = 7",
        "screen = \"moon\"",
        "[sort]\nLocks = \"nothing\"",
        "wrap = \"x\"",
        "sort = 1",
        "\0",
    ] {
        assert_eq!(Layout::of(&begin(text, None, sample::incident(0.0))), fresh, "{text:?}");
    }
}
