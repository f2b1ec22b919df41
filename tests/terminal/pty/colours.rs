//! Colours and characters: no more than the terminal supports and the user permits.

use super::escapes::{Piece, attributes, pieces};
use super::incident::Incident;
use super::screen::{Screen, find};

/// Opens several pages, quits, and returns all that was written.
fn tour(mut screen: Screen, root: i32) -> Vec<u8> {
    let root = root.to_string();
    screen.shows(&root);
    screen.keys("j");
    for (keys, text) in [("7", "Backends"), ("3", "Locks"), ("2", "Chains"), ("!", "Findings")] {
        screen.keys(keys);
        screen.shows(text);
    }
    screen.keys("2");
    screen.hides("Findings ");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    std::mem::take(&mut screen.seen().raw)
}

type Environment<'a> = &'a [(&'a str, &'a str)];
type Allowed<'a> = &'a dyn Fn(&str) -> bool;

/// Whether a parameter of SGR sets a colour: the default colours (39, 49, 59) do not count.
fn is_colour(attribute: &str) -> bool {
    let number: u32 = attribute.split(';').next().unwrap().parse().unwrap_or(0);
    matches!(number, 30..=38 | 40..=48 | 58 | 90..=97 | 100..=107)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_terminal_gets_the_colours_it_has() {
    let incident = Incident::crowd(12).await;
    let rgb = |a: &str| a.starts_with("38;2;") || a.starts_with("48;2;");
    let indexed = |a: &str| a.starts_with("38;5;") || a.starts_with("48;5;");
    let sixteen = |a: &str| {
        let index: Option<u8> = a.rsplit(';').next().and_then(|number| number.parse().ok());
        !a.contains(";2;") && (!indexed(a) || index.is_some_and(|index| index < 16))
    };
    let allowed: [(Environment, Allowed); 3] = [
        (&[("TERM", "xterm")], &sixteen),
        (&[("TERM", "xterm-256color")], &indexed),
        (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], &rgb),
    ];
    for (env, allowed) in allowed {
        let raw = tour(incident.screen((120, 35), env, &[]), incident.root());
        let colours: Vec<_> = attributes(&raw).into_iter().filter(|a| is_colour(a)).collect();
        let bad: Vec<_> = colours.iter().filter(|colour| !allowed(colour)).collect();
        assert!(bad.is_empty(), "{env:?}: {bad:?}");
        assert!(!colours.is_empty(), "{env:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_colours_the_selection_is_seen() {
    let incident = Incident::crowd(12).await;
    let root = incident.root().to_string();
    for (env, arguments) in [
        (&[("NO_COLOR", "1")][..], &["--screen", "chains"][..]),
        (&[], &["--theme", "mono", "--screen", "chains"]),
    ] {
        let mut screen = incident.screen((80, 24), env, arguments);
        screen.shows(&format!("> {root}"));
        {
            let seen = screen.seen();
            let emulator = seen.emulator.screen();
            let (row, column) = find(emulator, &format!("> {root}")).unwrap();
            let inverse = |row: u16| emulator.cell(row, column + 2).unwrap().inverse();
            assert!(inverse(row) && !inverse(row + 1), "{}", emulator.contents());
        }
        screen.keys("j");
        let raw = tour(screen, incident.root());
        let colours: Vec<_> = attributes(&raw).into_iter().filter(|a| is_colour(a)).collect();
        assert!(colours.is_empty(), "{colours:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_ascii_is_written_when_ascii_is_requested() {
    let incident = Incident::crowd(12).await;
    let client = super::support::open(&incident.info().with_application_name("報告")).await.client;
    client.batch_execute("SELECT 'Grüße, 報告 │ ░'").await.unwrap();
    for (env, arguments) in [
        (&[][..], &["--ascii"][..]),
        (&[("LANG", "C")], &[]),
        (&[("LC_ALL", "POSIX")], &[]),
        (&[("LANG", "de_DE.ISO-8859-1")], &[]),
    ] {
        let raw = tour(incident.screen((200, 50), env, arguments), incident.root());
        for piece in pieces(&raw) {
            if let Piece::Text(text) = piece {
                assert!(text.is_ascii(), "{env:?} {arguments:?}: {text}");
            }
        }
    }
    let raw = tour(incident.screen((200, 50), &[], &[]), incident.root());
    assert!(String::from_utf8(raw).unwrap().contains('─'));
}
