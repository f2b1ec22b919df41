use super::*;

#[test]
fn a_scrolled_pane_shows_how_much_is_above_until_it_loses_focus() {
    let title = |keys: &str, screen: &str| {
        let text = Stage::new(120, 30).view(sample::jobs(0.0).view()).keys(keys).text();
        let line = text.lines().find(|line| line.contains(screen)).unwrap();
        line[line.find(screen).unwrap()..].to_owned()
    };
    assert!(!title("4", "─ Tasks").contains("above"));
    let scrolled = title("<tab><tab><tab><end>", "─ Tasks");
    assert!(scrolled.contains(" above ─") && scrolled.contains("─ ↑ "), "{scrolled}");
    let left = title("<tab><tab><tab><end><tab>", "─ Tasks");
    assert!(!left.contains("above"), "the worst is shown again: {left}");
    let followed = title("<tab><tab><tab><end>f<tab>", "─ Tasks");
    assert!(followed.contains(" above ─"), "{followed}");
}

#[test]
fn tab_moves_between_the_parts_of_a_page() {
    let mut stage = incident(80, 24).keys("?");
    let top = |stage: &mut Stage| stage.text().lines().nth(3).unwrap().to_owned();
    assert_eq!(top(&mut stage), "Move");
    let mut tops = Vec::new();
    for key in ["<tab>", "<tab>", "<shift-tab>", "<down><shift-tab>"] {
        stage = stage.keys(key);
        tops.push(top(&mut stage));
    }
    assert_eq!(tops, ["Screens", "Rows", "Screens", "Screens"]);
    // The last part has no next one.
    let mut end = stage.keys("G<tab>");
    assert!(end.text().contains(&format!("{0} of {0}", crate::app::help::lines(&end.app, 80, "").len())));
}

#[test]
fn the_help_can_be_scrolled_to_its_end_at_every_size() {
    let rights = crate::model::plan::Rights {
        role: "ops".into(),
        version_num: 170_002,
        read_all_stats: true,
        superusers: vec!["postgres".into()],
        ..crate::model::plan::Rights::default()
    };
    for (width, height) in [(60, 15), (80, 24), (200, 60)] {
        let view = View { rights: Some(Arc::new(rights.clone())), ..sample::incident(0.0).view() };
        let mut stage = Stage::new(width, height).view(view);
        let all = crate::app::help::lines(&stage.app, usize::from(width), "");
        assert!(all.iter().all(|line| line.width() <= usize::from(width)), "{width}: a line is cut");
        for keys in ["?G".to_owned(), format!("?{}", "<pgdn>".repeat(all.len() / 8))] {
            stage = stage.keys(&keys);
            let text = stage.text();
            assert!(text.contains(all.last().unwrap().plain().trim_end()), "{width}x{height} {keys}: {text}");
            let scroll = |app: &App| match app.pages.last() {
                Some(crate::app::page::Page::Help { scroll, .. }) => *scroll,
                page => panic!("{page:?}"),
            };
            let (room, end) = (stage.app.page_rows, scroll(&stage.app));
            assert_eq!(end, all.len().saturating_sub(room), "{width}x{height}: no further than its end");
            stage = stage.keys("<esc>");
        }
    }
}

#[test]
fn the_help_is_searched_while_one_types() {
    let stage = |keys| Stage::new(80, 24).view(sample::incident(0.0).view()).keys(keys);
    let text = stage("?/ORPHAN").text();
    assert!(text.contains("a task recorded as running") && text.contains("Words"), "{text}");
    assert!(!text.contains("row above") && text.contains("/ORPHAN"), "{text}");
    let text = stage("?/zzz<enter>").text();
    assert!(text.contains("no match in the help") && text.contains("Help · /zzz"), "{text}");
    // Escape on the input line undoes the input. On the page, Escape first clears the search and then closes the page.
    for (keys, is_help, is_whole) in [
        ("?/zzz<esc>", true, true),
        ("?/orphan<enter>", true, false),
        ("?/orphan<enter><esc>", true, true),
        ("?/orphan<enter><esc><esc>", false, false),
        ("?/orphan<enter>?", false, false),
    ] {
        let text = stage(keys).text();
        assert_eq!(
            (text.contains("─ Help"), text.contains("row above")),
            (is_help, is_whole),
            "{keys}:\n{text}"
        );
    }
}
