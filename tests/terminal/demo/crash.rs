//! Workers that are killed during a task, stopped for longer than every timeout, and disconnected from the
//! server.

use super::headless::{Left, play};
use super::support::{self, is_long, versions};

fn assert_whole(left: &Left, what: &str) {
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{what}: {left:?}");
    for key in ["double_runs", "recovered_twice", "finishes_accepted", "lost_workers"] {
        assert_eq!(left.number(key), 0, "{what}: {key}: {left:?}");
    }
    assert!(left.number("recovered") >= left.number("overslept"), "{what}: {left:?}");
    assert!(left.number("processes") > left.number("workers"), "{what}: replaced: {left:?}");
}

#[test]
fn nothing_runs_twice_at_a_time_and_nothing_is_recovered_twice() {
    let mut arguments = vec!["--scenario", "crash", "--duration", "120s", "--format", "json"];
    for goal in ["kills=5", "overslept=1", "recovered=4", "finishes_refused=1", "cuts=1"] {
        arguments.extend(["--until", goal]);
    }
    assert_whole(&play(&arguments), "short");
}

#[test]
fn a_whole_minute_of_it_on_every_version() {
    if !is_long() {
        return;
    }
    for version in versions() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (info, server) = runtime.block_on(async {
            let options = locktop::demo::postgres::Options { version: Some(version), ..Default::default() };
            let options = options.with("max_connections", 400);
            let server = locktop::demo::postgres::EmbeddedServer::start(options).await.unwrap();
            (support::database(&server).await, server)
        });
        let target = server.conninfo().replace("dbname=postgres", &format!("dbname={}", info.dbname()));
        let left = play(&[
            "--scenario",
            "crash",
            "--scenario",
            "stall",
            "--duration",
            "60s",
            "--format",
            "json",
            "--url",
            &target,
        ]);
        assert_whole(&left, &version.to_string());
        assert!(left.number("kills") >= 15 && left.number("recovered") > 0, "{version}: {left:?}");
    }
}
