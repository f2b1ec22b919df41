use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};

use super::harmless;
use super::*;

#[test]
fn no_literal_and_no_password_gets_through() {
    for (input, expected) in [
        ("duplicate key: SELECT 's3cret', E'it''s3cret', 7", "duplicate key: SELECT '?', E'?', 7"),
        ("cut in SELECT 's3cret", "cut in SELECT '?'"),
        ("DO $$s3cret$$ and $x$ s3cret $x$ end", "DO '?' and '?' end"),
        ("SELECT $1, $2 doesn't", "SELECT $1, $2 doesn't"),
        ("relation \"app.jobs\" does not exist", "relation \"app.jobs\" does not exist"),
        ("column \"it is s3cret\" does not exist", "column \"?\" does not exist"),
        ("invalid input syntax for type integer: \"s3cret\"", "invalid input syntax for type integer: \"?\""),
        ("postgresql://ops:s3cr@t@db:5432/app failed", "postgresql://?@db:5432/app failed"),
        ("host=db PassWord=s3cret user=x", "host=db PassWord=? user=x"),
        ("password = s3cret user", "password = ? user"),
        ("{\"password\" : s3cret, \"user\": 1}", "{\"password\" : ? \"user\": 1}"),
        ("password authentication failed", "password authentication failed"),
        ("ungültige Eingabe: »s3cret« hier", "ungültige Eingabe: »?« hier"),
        ("nom « s3cret", "nom «?»"),
        ("無効な値 \"s3cret\"", "無効な値 \"?\""),
        ("a\u{1b}]0;x\u{7}\n\u{202e}b", "a␛]0;x␇ <U+202E>b"),
    ] {
        let line = harmless(input);
        assert!(!line.contains("s3cret") && !line.contains(char::is_control), "{line}");
        assert_eq!(line, expected);
    }
    assert!(harmless(&"x".repeat(1 << 20)).len() < 1100);
}

#[test]
fn a_level_is_one_of_four() {
    assert_eq!(level(None), Ok(LevelFilter::INFO));
    assert_eq!(level(Some("debug")), Ok(LevelFilter::DEBUG));
    assert_eq!(
        level(Some("loud")).unwrap_err(),
        "LOCKTOP_LOG is \"loud\": expected error, warn, info or debug"
    );
}

#[derive(Clone, Default)]
struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    full: bool,
    hangs: bool,
    text: String,
}

impl Disk {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn text(&self) -> String {
        self.0.0.lock().unwrap().text.clone()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (state, changed) = &*self.0;
        let mut state = changed.wait_while(state.lock().unwrap(), |state| state.hangs).unwrap();
        if state.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.text.push_str(std::str::from_utf8(bytes).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_lost_to_a_full_disk_are_counted_in_the_log() {
    let disk = Disk::default();
    let (log, sink) = LogWriter::start(disk.clone()).unwrap();
    sink.write("one".into());
    drop(log);
    disk.set(|state| state.full = true);
    let (log, sink) = LogWriter::start(disk.clone()).unwrap();
    for _ in 0..3 {
        sink.write("lost".into());
    }
    // All earlier lines have been tried.
    drop(log);
    disk.set(|state| state.full = false);
    sink.write("two".into());
    let until = crate::clock::monotonic() + std::time::Duration::from_secs(30);
    while !disk.text().ends_with("two\n") && crate::clock::monotonic() < until {
        std::thread::yield_now();
    }
    assert_eq!(disk.text(), "one\n(3 lines could not be written)\ntwo\n");
}

#[test]
fn a_hanging_disk_does_not_block_logging_or_exit() {
    let disk = Disk::default();
    disk.set(|state| state.hangs = true);
    let (log, sink) = LogWriter::start(disk.clone()).unwrap();
    let started = crate::clock::monotonic();
    for _ in 0..5000 {
        sink.write("x".into());
    }
    drop(log);
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
    disk.set(|state| state.hangs = false);
}
