//! The witness can fail: with the functions of the published recipe a task runs twice at a time, and that is reported.

use std::io::Write;

use super::headless::play;

const TEXT: &str = include_str!("../../server/schema/article.sql");

/// The recipe's tables and functions; a name that is both a column and an output parameter is the column: the
/// minimum that makes them run.
fn recipe() -> tempfile::NamedTempFile {
    let block = |name: &str| {
        let found = TEXT.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n'));
        found.unwrap().replace("AS $$\n", "AS $$\n#variable_conflict use_column\n")
    };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for name in ["tables", "acquire", "release", "fetch", "recover"] {
        file.write_all(block(name).as_bytes()).unwrap();
    }
    file
}

#[test]
fn workers_after_the_printed_recipe_run_a_task_twice_at_a_time() {
    let file = recipe();
    let path = file.path().to_str().unwrap();
    let left = play(&[
        "--recipe",
        path,
        "--scenario",
        "crash",
        "--until",
        "double_runs=1",
        "--duration",
        "120s",
        "--format",
        "json",
    ]);
    assert_eq!(left.status, Some(1), "{left:?}");
    assert!(left.number("double_runs") > 0 && left.number("cuts") > 0, "{left:?}");
    assert!(left.err.contains("of simultaneous runs of one task: task "), "{left:?}");
}

#[test]
fn its_recovery_fails_live_work() {
    // At a time scale at which its timeout is nearly zero: tasks that it counts as recovered continue to run.
    let file = recipe();
    let path = file.path().to_str().unwrap();
    let left = play(&[
        "--recipe",
        path,
        "--time-scale",
        "120",
        "--until",
        "recovered=1",
        "--duration",
        "120s",
        "--format",
        "json",
    ]);
    assert!(left.number("recovered") > 0 && left.number("lost_workers") == 0, "{left:?}");
}

#[test]
fn a_recipe_that_cannot_be_run_is_reported() {
    let left = play(&["--recipe", "/nonexistent/recipe.sql"]);
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
    assert!(left.err.starts_with("locktop: /nonexistent/recipe.sql: "), "{left:?}");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"CREATE TABEL scheduled_tasks ()").unwrap();
    let left = play(&["--recipe", file.path().to_str().unwrap()]);
    assert_eq!((left.status, left.out.as_str()), (Some(1), ""), "{left:?}");
    assert!(left.err.starts_with("locktop: the recipe cannot be used: syntax error"), "{left:?}");
}
