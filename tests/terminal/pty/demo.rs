//! `locktop demo`: everything in one.

use rustix::process::{Pid, Signal};

use super::process::children;
use super::screen::Screen;
use super::support::{exists, is_gone, wait_for};

/// All descendants of a process.
fn family(pid: Pid) -> Vec<i32> {
    let below = children(pid);
    let deeper = below.iter().filter_map(|child| Pid::from_raw(*child)).flat_map(family);
    deeper.chain(below.clone()).collect()
}

/// The directory of the server, from the command line of one of its processes.
fn directory(pids: &[i32]) -> std::path::PathBuf {
    let line = pids.iter().find_map(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let at = line.split('\0').find_map(|word| word.strip_prefix("unix_socket_directories="));
        at.map(str::to_owned)
    });
    line.expect("a server is running").into()
}

#[test]
fn it_shows_its_scenarios_and_leaves_nothing_behind() {
    let ends: [&dyn Fn(&mut Screen) -> u32; 3] = [
        &|screen| {
            screen.keys("q");
            0
        },
        &|screen| {
            screen.signal(Signal::TERM);
            128 + 15
        },
        &|screen| {
            screen.keys("<ctrl-c>");
            0
        },
    ];
    for end in ends {
        let mut screen = Screen::spawn((120, 35), &[], &["--refresh", "0.2s", "demo"]);
        screen.shows("LIVE");
        let family = family(screen.pid());
        let (directory, first) = (directory(&family), family[0]);
        let expected = end(&mut screen);
        assert_eq!(screen.wait_exit(), expected);
        screen.assert_restored();
        wait_for("the server and its directory to go", || {
            is_gone(&directory, first) && !family.iter().any(|pid| exists(*pid))
        });
    }
}

#[test]
fn tasks_and_all_three_lock_scenarios_appear() {
    let named = ["tasks", "chain", "convoy", "deadlock"].map(|name| format!("--scenario={name}"));
    let arguments = [&["--refresh", "0.2s", "demo"][..], &named.each_ref().map(String::as_str)].concat();
    let mut screen = Screen::spawn((160, 50), &[], &arguments);
    for name in ["psql-anna", "deploy-ci", "picker-"] {
        screen.shows(name);
    }
    screen.shows("1 deadlock");
    screen.keys("4");
    screen.shows("· 10 running");
    screen.shows("worker-");
}

/// The first steps of a new user: the line names what to try.
#[test]
fn a_stranger_ends_the_root_that_the_demo_begins_with() {
    let mut screen = Screen::spawn((80, 24), &[], &["--refresh", "0.2s", "demo"]);
    screen.shows("psql-anna did not commit: press K, y");
    // The strip names the shortcut.
    screen.shows("K terminate");
    // The worst finding changes while the demo begins.
    screen.wait_for("the root under the cursor", |seen| {
        seen.contents()
            .lines()
            .any(|line| line.starts_with("> CRIT") && line.contains(" idle in transaction, blocks"))
    });
    screen.asks("K", "y terminate");
    screen.keys("y");
    screen.shows("its session ended");
    // The other shortcuts of the line: `4`, then `R` on an orphan.
    screen.shows(" orphan ─");
    screen.keys("4");
    screen.shows("─ Tasks");
    screen.hides("─ Chains");
    within_three(&mut screen, |screen| {
        select(screen, "g", "orphan");
        screen.keys("R");
        if !screen.answers("y recover", &["Nothing is done", "it is not running"]) {
            screen.keys("<enter>");
            return false;
        }
        screen.keys("y");
        screen.answers("due again", &["nothing was done", "was not", "changed"])
    });
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

/// Each screen has rows, and its names are in the requested language.
#[test]
fn every_screen_of_the_demo_has_rows_in_one_language() {
    let is_chinese =
        |text: &str| text.chars().any(|character| ('\u{4e00}'..='\u{9fff}').contains(&character));
    let mut screen = Screen::spawn((120, 35), &[], &["--refresh", "0.2s", "demo"]);
    screen.shows("nightly export");
    screen.shows("prepared transaction invoice_1");
    for (key, rows) in [
        ("1", &["psql-anna", "worker-"][..]),
        ("2", &["nightly export", "prepared", "billing"]),
        ("3", &["nightly export", "invoices"]),
        ("4", &["running", "worker-"]),
        ("5", &["held", "node-"]),
        ("6", &["consumer-", "pending", "_"]),
        ("7", &["nightly-e", "idle in xact"]),
        ("8", &["began to block others"]),
        ("9", &["nightly export"]),
    ] {
        screen.keys(key);
        for text in rows {
            screen.shows(text);
        }
        assert!(!is_chinese(&screen.contents()), "{}", screen.contents());
    }
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);

    let arguments = ["--refresh", "0.2s", "demo", "--language", "zh"];
    let mut screen = Screen::spawn((120, 35), &[], &arguments);
    for (key, text) in [("1", "夜间导出"), ("4", "对账"), ("6", "consumer-")] {
        screen.keys(key);
        screen.shows(text);
        assert!(is_chinese(&screen.contents()), "{}", screen.contents());
    }
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

/// Tries at most three times, since the demo changes the rows, too. A question that is over remains open
/// until it is closed.
fn within_three(screen: &mut Screen, attempt: impl Fn(&mut Screen) -> bool) {
    let mut is_done = |_| {
        let is_done = attempt(screen);
        if !is_done && screen.contents().contains("[Back] Enter") {
            screen.keys("<enter>");
        }
        is_done
    };
    assert!((0..3).any(&mut is_done), "{}", screen.contents());
}

/// Selects a row that contains this text. After a row has disappeared nothing is selected.
fn select(screen: &mut Screen, key: &str, text: &str) {
    wait_for("a row to be selected", || {
        // Enter after a question that closed on its own has opened the page of a row.
        if !screen.contents().lines().any(|line| line.starts_with('>')) {
            screen.keys("<esc>");
        }
        screen.keys(key);
        screen.contents().lines().any(|line| line.starts_with('>') && line.contains(text))
    });
}

#[test]
fn a_person_recovers_an_orphan_of_the_demo() {
    let mut screen = Screen::spawn((120, 35), &[], &["--refresh", "0.5s", "demo", "--scenario", "crash"]);
    // In the words of the finding: the line that names what to try mentions an orphan before one exists.
    screen.shows(" orphaned, ");
    screen.keys("4");
    screen.hides("Advisory");
    screen.keys("/orphan<enter>");
    within_three(&mut screen, |screen| {
        // The youngest: no other session is about to recover it.
        select(screen, "G", "orphan");
        screen.keys("R");
        if !screen.answers("y recover", &["Nothing is done", "it is not running"]) {
            screen.keys("<enter>");
            return false;
        }
        screen.keys("y");
        screen.answers("due again", &["nothing was done", "was not", "changed"])
    });
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[test]
fn a_person_ends_a_live_lease_of_the_demo() {
    let mut screen = Screen::spawn((120, 35), &[], &["--refresh", "0.5s", "demo", "--scenario", "leases"]);
    screen.shows("4 held");
    screen.keys("5");
    screen.hides("Advisory");
    screen.keys("/held<enter>");
    within_three(&mut screen, |screen| {
        select(screen, "g", "held");
        screen.keys("U");
        if !screen.answers("to confirm", &["has ended", "it is not held", "released"]) {
            screen.keys("<enter>");
            return false;
        }
        // From the question: the key `g` may have been read after the row was.
        let text = screen.contents();
        let lease = text.split_once("End lease ").and_then(|(_, rest)| rest.split_whitespace().next());
        screen.keys(&format!("{}<enter>", lease.expect("the question names its lease")));
        screen.answers("has ended", &["nothing was done", "has changed"])
    });
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[test]
fn orphans_and_slow_tasks_are_shown() {
    let mut screen = Screen::spawn((160, 50), &[], &["--refresh", "0.2s", "demo", "--scenario", "crash"]);
    screen.keys("4");
    for state in ["orphan", "slow"] {
        screen.shows(state);
    }
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}
