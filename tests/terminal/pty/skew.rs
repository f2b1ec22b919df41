//! The clock of the machine that runs locktop is wrong by years. All ages on the screens are by the server's
//! clock.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::dashboard::Dashboard;
use super::incident::Incident;
use super::verbs::play;

const YEARS: i64 = 10 * 365 * 86_400;

/// A library that changes the clock of the program that loads it.
fn wrong_clock(directory: &Path, seconds: i64) -> PathBuf {
    let library = directory.join("skew.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/skew.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", &format!("-DSKEW=({seconds}L)"), source, "-ldl", "-o"])
        .arg(&library)
        .status()
        .expect("this test needs the compiler that Rust links with");
    assert!(built.success());
    library
}

/// Whether a word is a time of hours or more: nothing here is that old, and only the term of the lease is
/// that long.
fn is_long(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let digits = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(0);
    word != "1h00m" && digits > 0 && matches!(word.as_bytes().get(digits), Some(b'h' | b'd' | b'w' | b'y'))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ages_use_the_servers_clock_and_not_the_local_one() {
    let incident = Incident::crowd(5).await;
    let root = incident.root().to_string();
    let _db = play(&incident.info()).await;
    let directory = tempfile::tempdir().unwrap();
    for (seconds, year, does) in [(YEARS, "\"at\":\"203", "y disable"), (-YEARS, "\"at\":\"201", "y enable")]
    {
        let library = wrong_clock(directory.path(), seconds);
        let config = "[thresholds]\norphan_grace = \"0s\"\n";
        let env = [("LD_PRELOAD", library.to_str().unwrap())];
        let mut dashboard = Dashboard::with_env(
            (140, 35),
            &incident.server.conninfo(),
            &["--screen", "chains"],
            config,
            &env,
        );
        for (screen, words) in [
            ("2", root.as_str()),
            ("7", "Backends ·"),
            ("4", "orphan"),
            ("5", "node1"),
            ("8", "Events ·"),
            ("1", "Tasks ·"),
        ] {
            dashboard.screen.keys(screen);
            dashboard.screen.shows(words);
            let text = dashboard.screen.contents();
            let long: Vec<&str> = text.split_whitespace().filter(|word| is_long(word)).collect();
            assert!(long.is_empty(), "{long:?}:\n{text}");
        }
        // The record of actions is in the time of this machine, which shows that its clock was wrong.
        dashboard.screen.keys("4");
        dashboard.select_first("report");
        dashboard.question("E", does);
        dashboard.screen.keys("y");
        dashboard.done(1);
        assert_eq!(dashboard.on_record(year), 2);
        dashboard.quit();
    }
}
