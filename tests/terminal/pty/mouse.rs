//! The mouse and pasting.

use super::incident::Incident;
use super::screen::{Screen, find};

/// Presses the left button at a row and column, counted from 0 (the SGR encoding counts from 1).
fn click(screen: &mut Screen, (row, column): (u16, u16)) {
    screen.write(format!("\x1b[<0;{0};{1}M\x1b[<0;{0};{1}m", column + 1, row + 1).as_bytes());
}

fn wheel(screen: &mut Screen, (row, column): (u16, u16), down: bool) {
    let button = if down { 65 } else { 64 };
    screen.write(format!("\x1b[<{button};{};{}M", column + 1, row + 1).as_bytes());
}

fn place(screen: &Screen, text: &str) -> (u16, u16) {
    // The lock is released before the contents are read for the message.
    let found = find(screen.seen().emulator.screen(), text);
    found.unwrap_or_else(|| panic!("no {text}:\n{}", screen.contents()))
}

fn reports_the_mouse(screen: &vt100::Screen) -> bool {
    screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_click_selects_and_the_wheel_moves() {
    let incident = Incident::of(&[locktop::demo::scenario::Scenario::Chain]).await;
    let mut screen = incident.screen((120, 35), &[], &["--mouse", "--screen", "chains"]);
    let waits = &incident.running[0].facts.waits;
    let (second, last) = (waits[2].waiter.to_string(), waits[11].waiter.to_string());
    screen.shows(&last);
    screen.keys("gjj<enter>");
    screen.shows(&second);
    screen.wait_for("the mouse to be reported", reports_the_mouse);
    let at = place(&screen, &second);
    click(&mut screen, at);
    screen.shows_selected(&second);
    for _ in 0..10 {
        wheel(&mut screen, at, true);
    }
    screen.shows_selected(&last);
    for _ in 0..10 {
        wheel(&mut screen, at, false);
    }
    screen.shows_selected(&incident.root().to_string());
    // A click outside of the rows has no effect.
    click(&mut screen, (0, 0));
    click(&mut screen, (34, 119));
    screen.keys("m");
    screen.wait_for("the mouse to be let go", |screen| !reports_the_mouse(screen));
    screen.shows_selected(&incident.root().to_string());
    screen.keys("m");
    screen.wait_for("the mouse to be reported", reports_the_mouse);
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    screen.assert_restored();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_paste_is_typed_in_the_filter_and_ignored_elsewhere() {
    let incident = Incident::crowd(3).await;
    let root = incident.root().to_string();
    let mut screen = incident.looked_at((120, 35));
    assert!(screen.seen().emulator.screen().bracketed_paste());
    // Each of these characters would have an effect as a key: quit, change the screen, open the help.
    screen.write(b"\x1b[200~q7?p\x03\r\x1b[201~");
    screen.keys("/");
    screen.shows("Enter keep");
    assert!(screen.contents().contains("Chains ·"), "{}", screen.contents());
    screen.write(b"\x1b[200~query:adv\r\n\x1b[31misory\x1b[201~");
    screen.shows("/query:adv");
    screen.keys("<ctrl-u>");
    screen.write(format!("\x1b[200~pid:{root}\x1b[201~").as_bytes());
    screen.shows(&format!("/pid:{root}"));
    screen.keys("<enter>");
    screen.hides("Enter keep");
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
    for piece in super::escapes::pieces(&screen.seen().raw) {
        assert!(!matches!(piece, super::escapes::Piece::Other(_)), "{piece:?}");
    }
}
