//! The keys, one after the other, on a live server.

use locktop::demo::scenario::Scenario;

use super::incident::Incident;
use super::screen::Screen;
use super::support::wait_for;

/// A chain of twelve sessions; `root`, `first` and `second` are the pids of the root and of the first two waiters.
struct Chain {
    _incident: Incident,
    screen: Screen,
    root: String,
    first: String,
    second: String,
}

async fn chain() -> Chain {
    let incident = Incident::of(&[Scenario::Chain]).await;
    let root = incident.root().to_string();
    let waits = &incident.running[0].facts.waits;
    let (first, second) = (waits[0].waiter.to_string(), waits[1].waiter.to_string());
    let screen = incident.looked_at((120, 35));
    screen.shows_selected(&root);
    Chain { screen, root, first, second, _incident: incident }
}

fn quits(mut screen: Screen) {
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_keys_of_screens_and_pages() {
    let Chain { mut screen, root, first, second, _incident } = chain().await;
    screen.keys("?");
    screen.shows("Up k");
    screen.keys("G");
    screen.shows("orphan, or lost, after the grace period");
    screen.keys("?");
    screen.hides("orphan, or lost, after the grace period");

    screen.shows("Advisory ·");
    screen.keys("z");
    screen.hides("Advisory ·");
    screen.keys("z");
    screen.shows("Advisory ·");
    screen.keys("<tab><tab>z");
    screen.hides("Chains ·");
    screen.write(b"\x1b");
    screen.shows("Chains ·");
    screen.keys("<shift-tab>");

    screen.keys("2gj");
    screen.shows_selected(&first);
    screen.keys("<enter>");
    screen.shows(&format!("Backend {first}"));
    screen.shows(&second);
    screen.keys("w<esc>");
    screen.shows("Chains ·");

    screen.keys("7!");
    screen.shows("Findings ·");
    screen.keys("2");
    screen.hides("Findings ·");
    screen.shows_selected(&root);

    screen.keys("<ctrl-l>3a");
    screen.shows("of all types");
    screen.shows("accounts");
    screen.keys("a");
    screen.hides("of all types");
    screen.keys("4");
    screen.shows("no task tables here");
    screen.keys("5");
    screen.shows("no leases here");
    screen.keys("6");
    screen.shows("no table task_queue");
    screen.keys("8");
    screen.shows("Events ·");
    screen.shows("connected to PostgreSQL");
    screen.shows(&format!("{root} "));
    quits(screen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_filter_and_an_order_are_set_and_undone() {
    let Chain { mut screen, first, _incident, .. } = chain().await;
    screen.keys(&format!("2/pid:{first}"));
    screen.shows(&format!("/pid:{first} shows 1 of"));
    screen.keys("<enter>");
    screen.hides("Enter keep");
    screen.shows(&format!("/pid:{first} shows 1 of"));
    screen.write(b"\x1b");
    screen.hides("shows 1 of");
    screen.keys("/blocks>>");
    screen.shows("is not a number");
    screen.write(b"\x1b");
    screen.hides("/blocks");

    screen.keys("7s");
    screen.shows("Sort");
    screen.keys("j<enter>");
    screen.shows("· by ");
    let descending = |screen: &Screen| screen.contents().contains('↓');
    let before = descending(&screen);
    screen.keys("s");
    screen.shows("Sort");
    screen.keys("<enter>");
    wait_for("the other order", || descending(&screen) != before);
    quits(screen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rows_are_marked_copied_and_followed() {
    let Chain { mut screen, root, first, _incident, .. } = chain().await;
    screen.keys("2gjj<enter>g<space><space>");
    screen.shows("· 2 marked");
    screen.keys("y");
    screen.shows("copied 2 process ids");
    let copied = base64(&format!("{root} {first}"));
    screen.wait("the process ids on the clipboard", |seen| {
        seen.emulator.callbacks().copied.iter().any(|data| data == copied.as_bytes())
    });
    screen.keys("*");
    screen.shows("· 13 marked");
    screen.write(b"\x1b");
    screen.hides("marked");

    screen.keys("gj");
    screen.shows_selected(&first);
    screen.keys("f");
    screen.shows(&format!("following {first}"));
    screen.keys("7");
    screen.shows("Backends ·");
    screen.shows_selected(&first);
    screen.keys("f");
    screen.hides("following");
    quits(screen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_screen_is_held_still_and_the_interval_changes() {
    let Chain { mut screen, root, _incident, .. } = chain().await;
    screen.keys("p");
    screen.shows("PAUSED");
    screen.wait_for("how far behind", |screen| {
        screen.contents().lines().any(|line| line.contains("PAUSED ") && line.contains("s behind"))
    });
    screen.shows(&root);
    screen.keys("p");
    screen.hides("PAUSED");
    screen.shows("LIVE 0.2s");
    screen.keys("-");
    screen.shows("LIVE 0.5s");
    screen.keys("+");
    screen.shows("LIVE 0.2s");
    quits(screen);
}

/// RFC 4648.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |group: u32, place: u32| char::from(LETTERS[(group >> (18 - 6 * place)) as usize & 63]);
    let encode = |bytes: &[u8]| -> String {
        let group = (0..3).fold(0, |sum, at| sum << 8 | u32::from(bytes.get(at).copied().unwrap_or(0)));
        let place = |place: u32| if place as usize > bytes.len() { '=' } else { letter(group, place) };
        (0..4).map(place).collect()
    };
    text.as_bytes().chunks(3).map(encode).collect()
}

#[test]
fn base64_is_right() {
    assert_eq!(["", "f", "fo", "foo", "1 23"].map(base64), ["", "Zg==", "Zm8=", "Zm9v", "MSAyMw=="]);
}
