//! `locktop adapters check FILE TARGET`: the mistakes that the server finds, and their place in the file.

use locktop::pg::conninfo::ConnInfo;

use super::{database, run, server};
use crate::binary::{locktop, run_beside};

const TABLES: &str = "
    CREATE TABLE mail_jobs (id bigint PRIMARY KEY, kind text, state text, picked_at timestamptz, picked_by text);
    INSERT INTO mail_jobs VALUES (1, 'Mail', 'picked', now(), 'a');";

const FILE: &str = r#"format = 1
name = "mailer"
title = "Mailer"
licence = "MIT"
seen = "1"
[detect]
tables.jobs = { name = "mail_jobs", columns = { id = "int", kind = "text", picked_at = "time", picked_by = "text" } }
[[jobs.running]]
sql = """SELECT j.id::text AS id, j.kind AS name, 'running' AS state, j.picked_at AS started_at, j.picked_by AS worker
  FROM {jobs} j WHERE j.state = 'picked' LIMIT {limit}"""
[actions.recover]
proof = ["age"]
writes = ["jobs"]
sql = """UPDATE {jobs} AS j SET state = 'due'
  WHERE j.id = {id}::bigint AND j.picked_at = {started_at} AND j.picked_by = {worker}"""
then = "it is due again"
"#;

/// The exit status, and the output for this file.
async fn checked(info: &ConnInfo, text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mailer.toml");
    std::fs::write(&file, text).unwrap();
    let target = server().await.conninfo().replace("dbname=postgres", &format!("dbname={}", info.dbname()));
    let file = file.to_str().unwrap();
    let checked = run_beside(locktop(&["-w", "adapters", "check", file, &target])).await;
    (checked.status, checked.out.replace(file, "FILE"))
}

#[tokio::test]
async fn mistakes_found_by_the_server_are_reported_with_their_place() {
    let info = database(TABLES).await;
    let (status, out) = checked(&info, FILE).await;
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("recover") && out.contains("parsed and planned, not run"), "{out}");
    for (from, to, expected) in [
        ("j.kind AS name", "j.kin AS name", "FILE:9:35: [[jobs.running]]: column j.kin does not exist"),
        (
            "j.state = 'picked'",
            "j.stat = 'picked'",
            "FILE:10:23: [[jobs.running]]: column j.stat does not exist",
        ),
        (
            "j.id::text AS id",
            "j.id AS id",
            "FILE:9:10: [[jobs.running]]: its column id is not of type text, as …::text is: UNION types bigint and text cannot be matched",
        ),
        (
            "'running' AS",
            "'busy' AS",
            "FILE:9:10: [[jobs.running]]: it returned the state \"busy\": expected one of running, due, scheduled",
        ),
        (
            "SET state",
            "SET stat",
            "FILE:14:33: [actions.recover]: column \"stat\" of relation \"mail_jobs\" does not exist",
        ),
        (
            "j.picked_by = {worker}",
            "j.picked_b = {worker}",
            "FILE:15:64: [actions.recover]: column j.picked_b does not exist",
        ),
        ("{id}::bigint", "{id}", "FILE:15:14: [actions.recover]: operator does not exist: bigint = text"),
    ] {
        let (status, out) = checked(&info, &FILE.replacen(from, to, 1)).await;
        assert_eq!(status, Some(1), "{out}");
        assert!(out.contains(expected), "{expected} in {out}");
    }
    let kept = super::client(&info).await.query_one("SELECT state FROM mail_jobs", &[]).await.unwrap();
    assert_eq!(kept.get::<_, String>(0), "picked", "nothing was run");
}

/// A function that a trigger would run belongs to an untrusted owner: the statement is not even planned.
#[tokio::test]
async fn an_action_on_a_table_with_a_strangers_trigger_is_refused() {
    let info = database(TABLES).await;
    let stranger = "
        CREATE ROLE mail_stranger; GRANT CREATE ON SCHEMA public TO mail_stranger;
        SET ROLE mail_stranger; CREATE FUNCTION public.mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; RESET ROLE;
        CREATE TRIGGER mine BEFORE UPDATE ON mail_jobs FOR EACH ROW EXECUTE FUNCTION public.mine();";
    run(&info, stranger).await;
    let (status, out) = checked(&info, FILE).await;
    assert_eq!(status, Some(1), "{out}");
    let expected = "[actions.recover]: code of a trigger on public.mail_jobs runs belongs to mail_stranger";
    assert!(out.contains(expected), "{out}");
}
