//! The keys, one after the other, on a live server.

use crate::incident::Incident;
use crate::screen::find;
use locktop::demo::scenario::Scenario;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_key_does_what_the_help_says() {
    let incident = Incident::of(&[Scenario::Chain]).await;
    let root = incident.root().to_string();
    let waits = &incident.running[0].facts().waits;
    let (first, second) = (waits[0].waiter.to_string(), waits[1].waiter.to_string());
    let mut screen = incident.looked_at((120, 35));
    screen.shows(&format!("> {root}"));

    // Help, page by page.
    screen.keys("?");
    screen.shows("Up k");
    screen.keys("G");
    screen.shows("q Ctrl-C");
    screen.keys("?");
    screen.hides("q Ctrl-C");

    // Panes and zoom.
    screen.shows("Advisory ·");
    screen.keys("z");
    screen.hides("Advisory ·");
    screen.keys("z");
    screen.shows("Advisory ·");
    screen.keys("<tab>z");
    screen.hides("Chains ·");
    screen.keys("<esc>");
    screen.shows("Chains ·");
    screen.keys("<shift-tab>");

    // Filter: while typing, kept, and undone.
    screen.keys(&format!("2/pid:{first}"));
    screen.shows(&format!("/pid:{first} shows 1 of"));
    screen.keys("<enter>");
    screen.hides("Enter keep");
    screen.shows(&format!("/pid:{first} shows 1 of"));
    screen.keys("<esc>");
    screen.hides("shows 1 of");
    screen.keys("/blocks>>");
    screen.shows("is no number");
    screen.keys("<esc>");
    screen.hides("/blocks");

    // Sort: by the column that is chosen, again reverses.
    screen.keys("7s");
    screen.shows("Sort");
    screen.keys("j<enter>");
    screen.shows("· by ");
    let order = |screen: &crate::screen::Screen| {
        let seen = screen.seen();
        seen.emulator.screen().contents().contains('↓')
    };
    let before = order(&screen);
    screen.keys("s");
    screen.shows("Sort");
    screen.keys("<enter>");
    crate::support::wait_for("the other order", || order(&screen) != before);

    // Marks.
    screen.keys("2g<space><space>");
    screen.shows("· 2 marked");
    screen.keys("y");
    screen.shows("copied 2 process ids");
    let copied = format!("{root} {first}");
    screen.wait("the process ids on the clipboard", |seen| {
        seen.emulator.callbacks().copied.iter().any(|data| data == base64(&copied).as_bytes())
    });
    screen.keys("*");
    screen.shows("· 13 marked");
    screen.keys("<esc>");
    screen.hides("marked");

    // Follow, across screens.
    screen.keys("gj");
    screen.shows("> ");
    screen.keys("f");
    screen.shows(&format!("following {first}"));
    screen.keys("7");
    screen
        .wait_for("the followed row to be selected", |screen| find(screen, &format!("> {first}")).is_some());
    screen.keys("f");
    screen.hides("following");

    // Detail, and one step back.
    screen.keys("<enter>");
    screen.shows(&format!("Backend {first}"));
    screen.shows(&second);
    screen.keys("w");
    screen.keys("<esc>");
    screen.hides(&format!("Backend {first}"));

    // Findings: Enter jumps there.
    screen.keys("1!");
    screen.shows("Findings ·");
    screen.keys("<enter>");
    screen.hides("Findings ·");
    screen.shows(&root);

    // Locks, all of them.
    screen.keys("<ctrl-l>3a");
    screen.shows("all types");
    screen.shows("accounts");
    screen.keys("a");
    screen.hides("all types");

    // Pause: what is shown stays, and the header says how far behind.
    screen.keys("1p");
    screen.shows("PAUSED");
    screen.wait_for("how far behind", |screen| {
        screen.contents().lines().any(|line| line.contains("PAUSED ") && line.contains("s behind"))
    });
    screen.keys("p");
    screen.hides("PAUSED");
    screen.shows("LIVE 0.2s");
    screen.keys("-");
    screen.shows("LIVE 0.5s");
    screen.keys("+");
    screen.shows("LIVE 0.2s");
    screen.keys("4");
    screen.shows("no screen 4 yet");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
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
