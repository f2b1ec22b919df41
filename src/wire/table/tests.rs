use super::*;
use crate::text::width;
use crate::wire::sample;

fn rendered(width: Option<usize>) -> String {
    render(&sample::view(), &LockNames::default(), width).unwrap()
}

#[test]
fn the_whole_table() {
    let expected = "\
PostgreSQL 17.2 primary · app as monitor · 4/100 connections · 3 waiting · 2023-11-14 22:15:00 UTC
CRIT  prepared transaction 'order 7' blocks 1

PID                 BLOCKS  FREES   WAIT  STATE / WAITS FOR               DATABASE";
    let text = rendered(None);
    assert!(text.starts_with(expected), "{text}");
    let line =
        |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    let words = |start: &str| line(start).split_whitespace().take(8).collect::<Vec<_>>().join(" ");
    assert_eq!(
        words("1 "),
        "1 2 1 idle in transaction app app@web[31m".replace("[31m", &after_web(line("1 ")))
    );
    assert!(words("└ 2").starts_with("└ 2 1 1m00s Exclusive on advisory 72707369"), "{text}");
    assert!(
        words("└ 4").starts_with("└ 4 40.0s AccessShare on accounts")
            || words("└ 4").starts_with("└ 4 40s AccessShare on accounts"),
        "{text}"
    );
    assert!(line("prepared 'order 7'").contains("prepared transaction"));
    assert!(text.contains("Advisory locks: 1 held"));
    assert!(line("72707369").contains("exclusive"));
}

/// What became of the escape sequence behind `web`.
fn after_web(line: &str) -> String {
    line.split_once("@web").unwrap().1.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn nothing_of_the_server_reaches_the_terminal_as_a_command() {
    let text = rendered(None);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("SELECT 1 ;"), "a query is one line: {text}");
}

#[test]
fn lines_are_cut_to_the_width() {
    let narrow = rendered(Some(60));
    assert!(narrow.lines().all(|line| width(line) <= 60), "{narrow}");
    assert!(narrow.lines().any(|line| line.ends_with('…')));
}
