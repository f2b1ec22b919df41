use super::*;
use crate::model::blame::Episode;

const VOID: [&str; 2] = ["meta", "!doctype"];

/// Checks that the elements are nested correctly, and that nothing loads or runs anything.
pub(super) fn is_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        match tag {
            _ if tag.starts_with('/') => {
                assert_eq!(open.pop(), Some(name), "in {}", &part[..part.len().min(200)]);
            }
            _ if tag.ends_with('/') || VOID.contains(&name) => {}
            _ => open.push(name),
        }
        // The text outside quotes contains the attribute names.
        let outside: Vec<&str> = tag.split('"').step_by(2).collect();
        let (last, names) = outside.split_last().unwrap();
        assert!(!last.contains('='), "<{tag}>");
        for name in names {
            let attribute = name.trim_end_matches('=').rsplit(' ').next().unwrap();
            assert!(name.ends_with('='), "<{tag}>");
            assert!(
                !["src", "href", "srcset", "data"].contains(&attribute) && !attribute.starts_with("on"),
                "<{tag}>"
            );
        }
        assert!(
            !["script", "img", "link", "a", "iframe", "object", "use", "image"].contains(&name),
            "<{tag}>"
        );
    }
    assert_eq!(open, [""; 0]);
    let css = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    for forbidden in ["url(", "@import", "http", "expression"] {
        assert!(!css.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
}

/// The text between the tags, without titles, which are shown only on hover.
fn words(page: &str) -> String {
    let body = page.split("<body>").nth(1).unwrap();
    let without = |text: &str, element: &str| {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let mut parts = text.split(open.as_str());
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |all, part| all + part.split_once(close.as_str()).unwrap().1)
    };
    without(body, "title")
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
        .collect()
}

#[test]
fn a_page_has_axes_a_legend_bars_and_the_episodes_of_its_twin() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut recording) = recorded(folder.path());
    let report = of(&mut recording, 0..180, None, waiting).unwrap();
    let (page, text) = (html(&report, STYLE), markdown(&report, STYLE));
    is_well_formed(&page);
    assert!(page.len() < 60_000, "{}", page.len());
    has_all(
        &page,
        &[
            "prefers-color-scheme:dark",
            "@page{size:A4",
            "<figcaption>Sessions that wait for a lock, by root blocker</figcaption>",
            "bottom:0.0%\">0</span>",
            ">30</span>",
            "15:03:00</time>",
            "15:05:30</time>",
            "<i class=\"c0\">A</i> 4312 app@billing, at most",
            "<b>!</b> a session began to block others",
            "no session waits</title>",
            " waiting: ",
            "Each bar shows when",
            "<ul class=\"t\"><li><div>",
        ],
    );
    let plain = words(&page);
    let ranked: Vec<&Episode> =
        report.blame.episodes_in(BlamePeriod::All).filter(|of| of.sums.most > 0).collect();
    assert!(ranked.len() > 2);
    for episode in ranked {
        let row = text.lines().find(|line| line.starts_with(&format!("| {} | ", episode.number))).unwrap();
        let ended = row.trim_end_matches(" |").rsplit(" | ").next().unwrap().replace('\\', "");
        let root = row.split(" | ").nth(5).unwrap().replace('\\', "");
        let bar = plain.split_once(&format!("{} {root} on ", episode.number)).map(|(_, bar)| bar);
        let said = bar.and_then(|bar| bar.split_once("Ended: ")).unwrap_or_else(|| panic!("{row}"));
        assert!(said.1.starts_with(&ended.replace("&#39;", "'")), "{row}");
        assert!(page.contains(&format!("aria-label=\"episode {}\"", episode.number)));
    }
    // A time in the text must not be broken at the end of a line.
    let unbroken: String =
        page.split("<time").skip(1).map(|part| part.split("</time>").next().unwrap()).collect();
    for time in ["15:04:01–15:05:30:", "15:04:00"] {
        assert_eq!(plain.contains(time), unbroken.contains(time), "{time}");
    }
    assert!(unbroken.contains("15:04:01–15:05:30:"));
}

/// For a server that is connected by a socket, the title has no path.
#[test]
fn the_title_is_the_host_the_database_and_the_time() {
    let server = |host: &str, port, database: &str| {
        let view = sample::blame(0).view();
        let server = view.snapshot.unwrap().server().cloned().unwrap();
        place_of(&Server { host: host.into(), port, database: database.into(), ..server })
    };
    assert_eq!(server("db1.example.com", 5432, "shop"), "db1.example.com/shop");
    assert_eq!(server("/var/run/postgresql", 5433, "shop"), "localhost:5433/shop");
    assert_eq!(server("::1", 5433, "<b>"), "[::1]:5433/<b>");
    let folder = tempfile::tempdir().unwrap();
    let (_, mut recording) = recorded(folder.path());
    let report = of(&mut recording, 0..180, None, waiting).unwrap();
    let text = markdown(&report, STYLE);
    let title = text.lines().next().unwrap();
    assert!(title.starts_with(&format!("# {}", report.place)) && !report.place.is_empty(), "{title}");
    assert!(title.contains(" to 15:0") && title.ends_with("+01:00"), "{title}");
}

/// A session's `ALTER TABLE`: attempts of 0.2 s each between two snapshots, then one that waits.
fn migration(second: i32, waits: Option<f64>) -> sample::Builder {
    let mut scene = sample::Builder { now: f64::from(second), ..sample::Builder::default() };
    let table = sample::relation(7);
    scene.relations = vec![(7, "orders")];
    scene.session(2053, "report@metabase", State::Active, 30.0, "SELECT count(*) FROM orders");
    scene.lock(2053, table, LockMode::AccessShare, None);
    let alter = "ALTER TABLE orders ADD COLUMN note text;";
    if let Some(waits) = waits {
        scene.session(2091, "app@flyway", State::Active, waits, alter);
        scene.lock(2091, table, LockMode::AccessExclusive, Some(waits));
    } else {
        let tried = scene.session(2091, "app@flyway", State::Idle, 0.5, alter);
        tried.state_change = Some(at(f64::from(second) - 0.3));
    }
    scene
}

#[test]
fn tries_between_two_snapshots_are_reported_as_far_as_they_were_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tries.ltr");
    record(&path, 0..12, |second| migration(second, None));
    let mut recording = Recording::open(&path).unwrap();
    let report = of(&mut recording, 0..12, None, waiting).unwrap();
    let tries = &report.tries[0];
    assert_eq!((report.tries.len(), tries.runs, tries.waiting), (1, 12, 0));
    assert!((tries.longest - 0.2).abs() < 0.01, "{tries:?}");
    let text = markdown(&report, STYLE);
    has_all(
        &text,
        &[
            "no session was seen waiting for a lock",
            "12 runs of ALTER TABLE orders ADD COLUMN note text by app@flyway",
            "## Repeated statements",
            "no snapshot shows one waiting",
        ],
    );
    assert!(!text.contains("lock\\_timeout ("), "{text}");
    let report = of(&mut recording, 0..12, Some(Redaction::Queries), waiting).unwrap();
    assert!(!markdown(&report, STYLE).contains("ADD COLUMN"));
    // Two attempts are not reported.
    let report = of(&mut recording, 0..2, None, waiting).unwrap();
    assert_eq!(report.tries, []);
}

/// The wait of the `ALTER TABLE` is not at the time of the most waits.
#[test]
fn a_change_of_a_table_that_waits_is_advised_whenever_that_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ddl.ltr");
    record(&path, 0..40, |second| match second {
        0..6 => migration(second, Some(f64::from(second) + 0.5)),
        6..10 => sample::Builder { now: f64::from(second), ..sample::Builder::default() },
        _ => sample::crowd(20, 0, f64::from(second)),
    });
    let mut recording = Recording::open(&path).unwrap();
    let advice = |recording: &mut Recording, places| {
        let report = of(recording, places, None, waiting).unwrap();
        let found = report.settings.into_iter().find(|setting| setting.name == "lock_timeout");
        found.map(|setting| setting.advice)
    };
    let found = advice(&mut recording, 0..40).unwrap();
    has_all(
        &found,
        &["2091 waited at least 5", "for AccessExclusive (ALTER TABLE orders", "no shorter lock_timeout"],
    );
    assert_eq!(advice(&mut recording, 0..2), None, "it has not waited for long");
    assert_eq!(advice(&mut recording, 10..40), None, "it is not in that part");
}
