//! Printed output: a snapshot into a pipe that closes, completions, the manual page, the config; and flags
//! that do not exist.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use locktop::demo::scenario::{Scenario, ScratchSchema, Timing};

use super::binary::{finish, locktop, run, run_beside};
use super::document::address;
use super::support::{database, open, server};
use super::terminal::Terminal;

#[tokio::test]
async fn a_pipe_that_closes_is_no_failure() {
    let target = server().await.conninfo();
    let command = |format: &str| locktop(&["snapshot", "--format", format, &target]);
    for format in ["table", "json"] {
        let mut child = command(format).spawn().unwrap();
        // There is no reader: the first byte that is written fails.
        drop(child.stdout.take());
        let left = tokio::task::spawn_blocking(move || finish(child, "the snapshot")).await.unwrap();
        assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{format}");
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" snapshot \"$1\" | head -1", env!("CARGO_BIN_EXE_locktop"), &target]);
    shell.env("HOME", "/nonexistent").process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let left = run_beside(shell).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    assert!(left.out.starts_with("PostgreSQL ") && left.out.lines().count() == 1, "{}", left.out);
}

/// Output that cannot be written is a failure, which is reported in one line.
#[tokio::test]
async fn an_output_that_takes_nothing_is_a_failure() {
    let target = server().await.conninfo();
    for (command, expected) in [
        ("\"$0\" snapshot \"$1\" >/dev/full", "locktop: No space left on device (os error 28)\n"),
        ("\"$0\" --help >/dev/full", "locktop: No space left on device (os error 28)\n"),
        ("\"$0\" --version >/dev/full", "locktop: No space left on device (os error 28)\n"),
        ("\"$0\" config print >/dev/full", "locktop: No space left on device (os error 28)\n"),
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", command, env!("CARGO_BIN_EXE_locktop"), &target]).env("HOME", "/nonexistent");
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let left = run_beside(shell).await;
        assert_eq!((left.status, left.err.as_str()), (Some(1), expected), "{command}");
    }
    // Output that is discarded on purpose is no failure.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" snapshot \"$1\" >/dev/null", env!("CARGO_BIN_EXE_locktop"), &target]);
    shell.env("HOME", "/nonexistent").stdin(Stdio::null()).stderr(Stdio::piped());
    assert_eq!(run_beside(shell).await.status, Some(0));
}

/// In a terminal the table has its width, and only characters that it can show.
#[tokio::test]
async fn the_table_fits_the_width_and_characters_of_its_output() {
    let info = database(server().await).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let running = Scenario::Chain.start(&scratch, Timing::TEST).await.unwrap();
    let target = server().await.conninfo();
    let work = move || {
        let in_terminal = |locale| Terminal::start_in(locale, &["snapshot", &target]).end();
        let piped = |arguments: &[&str]| run(locktop(&[arguments, &["snapshot", &target]].concat())).out;
        let whole = ["snapshot", "--width", "0", &target];
        let whole = |before: &[&str]| run(locktop(&[before, &whole].concat())).out;
        let other = (whole(&[]), whole(&["--ascii"]));
        (in_terminal("C.UTF-8"), in_terminal("C"), piped(&[]), other)
    };
    let ((_, utf8), (_, ascii), plain, (whole, whole_ascii)) =
        tokio::task::spawn_blocking(work).await.unwrap();
    for text in [&utf8, &ascii] {
        let widths: Vec<usize> = text.lines().map(locktop::text::width).collect();
        assert!(widths.iter().all(|width| *width <= 80) && widths.iter().any(|width| *width > 70), "{text}");
    }
    assert!(utf8.contains("└") && utf8.contains('…'), "{utf8}");
    assert!(ascii.is_ascii() && ascii.contains('`') && ascii.contains('~'), "{ascii}");
    // Piped output is no wider than 100 columns.
    assert!(plain.lines().all(|line| locktop::text::width(line) <= 100), "{plain}");
    assert!(whole.contains("└") && whole.lines().any(|line| line.len() > 120), "{whole}");
    assert!(whole_ascii.is_ascii() && whole_ascii.lines().any(|line| line.len() > 120), "{whole_ascii}");
    running.stop().await.unwrap();
    scratch.remove().await.unwrap();
}

#[test]
fn output_that_needs_no_server_is_complete() {
    for (arguments, expected) in [
        (&["completions", "bash"][..], vec!["_locktop()", "snapshot", "--format"]),
        (&["completions", "zsh"], vec!["#compdef locktop"]),
        (&["completions", "fish"], vec!["complete -c locktop"]),
        (&["man"], vec![".TH locktop", "SNAPSHOT", "\\-\\-format", "PGHOST"]),
        (&["config", "print"], vec!["refresh = \"1s\"", "[thresholds]"]),
        (&["--version"], vec!["locktop 0"]),
        (&["--help"], vec!["Usage:", "snapshot", "demo", "-h, --host"]),
        (&["-?"], vec!["Usage:"]),
        (&["snapshot", "--help"], vec!["--format"]),
        (&["recover", "--help"], vec!["Recover tasks whose worker has died", "--terminate"]),
        (&["demo", "--help"], vec!["--headless", "--until", "--time-scale", "[default: 60]", "crash"]),
    ] {
        let left = run(locktop(arguments));
        assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{arguments:?}");
        for part in expected {
            assert!(left.out.contains(part), "{arguments:?}: {part} in {}", left.out);
        }
        assert!(!left.out.contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn the_config_is_found_and_its_errors_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let with_home = |arguments: &[&str]| {
        let mut command = locktop(arguments);
        command.env("HOME", home.path());
        run(command)
    };
    let path = home.path().join(".config/locktop/config.toml");
    let left = with_home(&["config", "path"]);
    assert_eq!((left.status, left.out), (Some(0), format!("{}\n", path.display())));
    let left = with_home(&["config", "check"]);
    assert_eq!(
        (left.status, left.out),
        (Some(0), format!("{}: does not exist, the defaults apply\n", path.display()))
    );

    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, run(locktop(&["config", "print"])).out).unwrap();
    let left = with_home(&["config", "check"]);
    assert_eq!((left.status, left.out), (Some(0), format!("{}: no mistakes\n", path.display())));

    std::fs::write(&path, "refresh = \"1s\"\n[thresholds]\nwait = \"soon\"\n").unwrap();
    for arguments in [&["config", "check"][..], &["snapshot", "host=/nonexistent"], &["demo"]] {
        let left = with_home(arguments);
        assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{arguments:?}: {}", left.err);
        let place = format!("{}:3", path.display());
        assert!(left.err.contains(&place) && left.err.contains("wait"), "{arguments:?}: {}", left.err);
    }

    std::fs::write(&path, "[keys]\nquit = \"x\"\nzoom = \"x\"\n").unwrap();
    let left = with_home(&["config", "check"]);
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""));
    let place = format!("{}:3:8: the key x is bound to both quit and zoom", path.display());
    assert!(left.err.contains(&place), "{}", left.err);
}

/// A target of the config, and a lock that it names.
#[tokio::test]
async fn the_config_names_servers_and_locks() {
    let info = database(server().await).await;
    let holder = open(&info).await.client;
    holder.batch_execute("SELECT pg_advisory_lock(815)").await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("locktop.toml");
    let conninfo = address(server().await, &info);
    let text = format!(
        "[targets.here]\nconninfo = \"{conninfo}\"\n[[lock_names]]\nkey = 815\nname = \"billing close\"\n"
    );
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let left = run_beside(locktop(&["--config", &file, "snapshot", "--format", "json", "here"])).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&left.out).unwrap();
    assert_eq!(json["server"]["database"], info.dbname());
    let locks = json["locks"].as_array().unwrap();
    let lock = locks.iter().find(|lock| lock["key"]["value"] == 815).unwrap();
    assert_eq!(lock["name"], "billing close");
    let left = run_beside(locktop(&["--config", &file, "snapshot", "here"])).await;
    assert!(left.out.contains("billing close"), "{}", left.out);
}

#[test]
fn wrong_usage_ends_with_2() {
    for (arguments, named) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["snapshot", "--format", "xml"], "xml"),
        (&["snapshot", "one", "two"], "two"),
        (&["--refresh", "never"], "never"),
        (&["completions", "no-shell"], "no-shell"),
        (&["snapshot", "host=/tmp prot=1"], "prot"),
        (&["snapshot", "-p", "none"], "none"),
    ] {
        let left = run(locktop(arguments));
        assert_eq!((left.status, left.out.as_str()), (Some(2), ""), "{arguments:?}: {}", left.err);
        assert!(left.err.contains(named), "{arguments:?}: {}", left.err);
    }
}

/// Its owner is the demo, which starts it.
#[test]
fn a_worker_of_the_demo_is_hidden_and_does_nothing_by_itself() {
    for arguments in [&["--help"][..], &["man"]] {
        let left = run(locktop(arguments));
        assert!(!left.out.contains("demo-worker") && !left.out.contains("DEMO-WORKER"), "{arguments:?}");
    }
    let left = run(locktop(&["demo-worker", "x"]));
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""));
    assert!(left.err.contains("is a part of \"locktop demo\""), "{}", left.err);
}
