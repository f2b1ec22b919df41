//! Systems with a table for each queue: pgmq and Absurd. Each queue is an installation, with the trust that any other needs.

use std::fmt::Write as _;

use super::states::assert_states;
use super::{Part, all, are_read, client, database, found, run, used};
use crate::trust::ground::{Ground, one_version};
use locktop::pg::jobs::adapters::survey;
use locktop::pg::trust::TrustedOwners;

const PGMQ: &str = include_str!("tables/pgmq.sql");
const ABSURD: &str = include_str!("tables/absurd.sql");

#[tokio::test]
async fn pgmq() {
    let rows = "
        INSERT INTO pgmq.q_mail (read_ct, vt) VALUES (1, now() + interval '30 s'), (0, now() - interval '1 s'), (2, now() - interval '1 s'), (0, now() + interval '1 hour');
        INSERT INTO pgmq.q_parted (msg_id, read_ct, vt) VALUES (1, 1, now() + interval '30 s');";
    let json = assert_states(
        &format!("{PGMQ}{rows}"),
        &[
            ("mail", "running", "lease", ""),
            ("mail", "due", "none", ""),
            ("mail", "retry", "none", ""),
            ("mail", "scheduled", "none", ""),
            ("parted", "running", "lease", ""),
        ],
    )
    .await;
    let found = json["adapters"].as_array().unwrap();
    let prefixes: Vec<_> = found.iter().map(|one| one["prefix"].as_str().unwrap()).collect();
    assert_eq!(prefixes, ["mail", "parted"], "a part is no queue");
    assert_eq!(found[0]["jobs"][0]["advice"], "SELECT pgmq.set_vt('mail', 1, 0)");
}

#[tokio::test]
async fn absurd() {
    let run = |n: u32| format!("'00000000-0000-0000-0000-0000000000{n:02}'");
    let mut rows = String::new();
    for (n, name, state, attempt, times, wakes) in [
        (1, "Claimed", "running", 1, "now(), now() + interval '30 s', now()", "NULL"),
        (2, "Over", "running", 1, "now(), now() - interval '1 s', now()", "NULL"),
        (3, "Without end", "running", 1, "now(), NULL, now()", "NULL"),
        (4, "Due", "pending", 1, "NULL, NULL, now()", "NULL"),
        (5, "Again", "pending", 2, "NULL, NULL, now()", "NULL"),
        (6, "Later", "sleeping", 1, "now(), NULL, now() + interval '1 hour'", "NULL"),
        (7, "Waits", "sleeping", 1, "now(), NULL, 'infinity'", "'paid'"),
        (8, "Failed", "failed", 3, "now(), NULL, now()", "NULL"),
        (9, "Done", "completed", 1, "now(), NULL, now()", "NULL"),
    ] {
        let _ = write!(
            rows,
            "INSERT INTO absurd.\"t_Mail out\" (task_id, task_name, state, last_attempt_run) VALUES ({0}, '{name}', '{state}', {0});
             INSERT INTO absurd.\"r_Mail out\" (run_id, task_id, attempt, state, claimed_by, started_at, claim_expires_at, available_at, wake_event, failure_reason)
             VALUES ({0}, {0}, {attempt}, '{state}', 'w', {times}, {wakes}, '{{\"message\": \"boom\"}}');",
            run(n)
        );
    }
    let json = assert_states(
        &format!("{ABSURD}{rows}"),
        &[
            ("Claimed", "running", "lease", ""),
            ("Over", "lost", "lease", "as"),
            ("Without end", "unknown", "none", ""),
            ("Due", "due", "none", ""),
            ("Again", "retry", "none", ""),
            ("Later", "scheduled", "none", ""),
            ("Waits", "blocked", "none", ""),
            ("Failed", "failed", "none", ""),
        ],
    )
    .await;
    let one = &json["adapters"][0];
    let job = |name: &str| one["jobs"].as_array().unwrap().iter().find(|job| job["name"] == name).unwrap();
    assert_eq!(
        job("Over")["advice"],
        "SELECT absurd.fail_run('Mail out', '00000000-0000-0000-0000-000000000002', '{}')"
    );
    assert_eq!(
        (&job("Waits")["blocked_by"], &job("Failed")["error"]),
        (&"the event paid".into(), &"boom".into())
    );
}

#[tokio::test]
async fn large_queues_are_read_by_their_indexes() {
    let first = |parts: &[Part]| parts.iter().map(|part| (*part, Some(1))).collect::<Vec<_>>();
    let all = first(&[Part::Running, Part::Due, Part::Scheduled, Part::Depth]);
    let pgmq = "DROP TABLE pgmq.q_parted; INSERT INTO pgmq.q_mail (read_ct, vt) SELECT n % 2, now() + (n - 100000) * interval '1 s' FROM generate_series(1, 150000) n;";
    are_read(&format!("{PGMQ}{pgmq} ALTER TABLE pgmq.q_mail ADD last_read_at timestamptz;"), &all).await;
    are_read(&format!("{PGMQ}{pgmq}"), &[&[(Part::Running, Some(2))], &all[1..]].concat()).await;
    let absurd = "INSERT INTO absurd.\"t_Mail out\" (task_id, task_name, state) SELECT gen_random_uuid(), 'T', 'completed' FROM generate_series(1, 150000) n;
        INSERT INTO absurd.\"r_Mail out\" (run_id, task_id, attempt, state, available_at) SELECT t.task_id, t.task_id, 1, CASE WHEN random() < 0.1 THEN 'pending' ELSE 'completed' END, now()
          FROM absurd.\"t_Mail out\" t;";
    are_read(&format!("{ABSURD}{absurd}"), &[&all[..], &first(&[Part::Failed])].concat()).await;
}

#[tokio::test]
async fn of_many_queues_twenty_are_read() {
    let info = database(PGMQ).await;
    run(&info, "CREATE ROLE queue_owner; DO $$ BEGIN FOR i IN 10..39 LOOP
        EXECUTE format('CREATE TABLE pgmq.q_m%s (LIKE pgmq.q_mail INCLUDING ALL)', i); EXECUTE format('CREATE TABLE pgmq.q_a%s (LIKE pgmq.q_mail)', i);
        EXECUTE format('ALTER TABLE pgmq.q_a%s OWNER TO queue_owner', i); END LOOP; END $$").await;
    let found = found(&info, &all()).await;
    let count = |is: fn(&str) -> bool| {
        found.iter().filter(|one| is(one.refused.as_deref().unwrap_or_default())).count()
    };
    assert_eq!((count(str::is_empty), count(|reason| reason.contains("belongs to queue_owner"))), (20, 20));
    let last = found.last().unwrap();
    assert_eq!(
        last.refused.as_deref(),
        Some("it is one of 22 queues that are not read: only the first 20 of a schema are, by name")
    );
    let mut oids: Vec<u32> = found.iter().map(|one| one.oid).collect();
    oids.sort_unstable();
    oids.dedup();
    assert_eq!(oids.len(), found.len(), "each has an oid of its own");
    client(&info).await.batch_execute("DROP OWNED BY queue_owner; DROP ROLE queue_owner").await.unwrap();
}

/// Tables that an untrusted role has put among the queues are not read, and do not prevent reading the
/// others.
#[tokio::test]
async fn a_queue_of_a_stranger_a_view_and_a_policy() {
    const QUEUES: &str = "
        CREATE FOREIGN TABLE pgmq.q_far (msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb) SERVER f OPTIONS (filename '/nonexistent');
        CREATE VIEW pgmq.q_view AS SELECT * FROM pgmq.q_mail;
        CREATE TABLE pgmq.q_secure (LIKE pgmq.q_mail); ALTER TABLE pgmq.q_secure ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON pgmq.q_secure USING (evil.hit('policy'));
        CREATE TABLE pgmq.q_typed (msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb, headers evil.odd);
        CREATE TABLE pgmq.\"q_'; SELECT evil.hit('name') --\" (LIKE pgmq.q_mail INCLUDING ALL);
        INSERT INTO pgmq.\"q_'; SELECT evil.hit('name') --\" (read_ct, vt) VALUES (0, now());
        GRANT USAGE ON SCHEMA pgmq TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA pgmq TO PUBLIC;";
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.run("postgres", &format!("{PGMQ} GRANT USAGE, CREATE ON SCHEMA pgmq TO mallory; CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw")).await;
        ground
            .run(
                "mallory",
                "CREATE TYPE evil.odd AS ENUM ('a'); GRANT USAGE ON SCHEMA evil TO PUBLIC;
                 CREATE TABLE pgmq.q_evil (msg_id bigint, read_ct int, enqueued_at timestamptz, vt timestamptz, message jsonb); CALL evil.trap('pgmq.q_evil')",
            )
            .await;
        ground.run("postgres", QUEUES).await;
        let client = ground.client_as("monitor", "locktop").await;
        let found = survey(&client, &TrustedOwners::default(), &all()).await.unwrap();
        let refusals: Vec<_> =
            found.iter().map(|one| (&*one.prefix, one.refused.as_deref().unwrap_or("read"))).collect();
        let row_security = "row security is in force on pgmq.q_secure: only its owner, or a role with BYPASSRLS, can read it";
        let remedy = "who is not trusted; --trust-owner mallory, or trusted_owners = [\"mallory\"] in the config, permits it";
        let expected = [
            ("'; SELECT evil.hit('name') --", "read".to_owned()),
            ("evil", format!("pgmq.q_evil belongs to mallory, {remedy}")),
            ("far", "pgmq.q_far is a foreign table, which is not read".to_owned()),
            ("mail", "read".to_owned()),
            ("parted", "read".to_owned()),
            ("secure", row_security.to_owned()),
            ("typed", format!("a column of pgmq.q_typed has the type odd of mallory, {remedy}")),
            ("view", "pgmq.q_view is a view, which is not read".to_owned()),
        ];
        assert_eq!(refusals, expected.each_ref().map(|(name, reason)| (*name, &**reason)));
        for one in found.iter().filter(|one| one.refused.is_none()) {
            assert_eq!(used(one).len(), 4, "{}", one.label());
        }
        ground.is_clean("queues of an untrusted role");
        let trusted: TrustedOwners = ["mallory".to_owned()].into_iter().collect();
        let boss = ground.client_as("boss", "locktop").await;
        survey(&boss, &trusted, &all()).await.unwrap();
        assert!(!ground.tags().is_empty(), "the traps are good");
    }
}
