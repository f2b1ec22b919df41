//! Columns that a row gets from the server, and the roles that can set them.

use locktop::pg::conninfo::ConnInfo;

use super::db::{Session, installed};
use super::support::{server_of, versions};

const FORGED: &str = "INSERT INTO locktop_audit (action, actor, at, session_role, session_pid)
                           VALUES ('terminated', 'boss', '2001-01-01', 'boss', 1)";

/// A role that can insert into the audit cannot set another role or time. Its owner can, so that a dump can be restored.
#[tokio::test]
async fn an_audit_row_has_its_true_role_session_and_time() {
    for version in versions() {
        let info = installed(version).await;
        let owner = Session::open(&info).await;
        let role = format!("worker_of_{}", info.dbname());
        owner
            .run(&format!(
                "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA locktop TO {role}; GRANT INSERT, SELECT ON locktop_audit TO {role};
                 GRANT USAGE ON SEQUENCE locktop_audit_id_seq TO {role}"
            ))
            .await;
        let server = server_of(version).await.conninfo().replace("user=postgres", &format!("user={role}"));
        let worker = Session::open(&ConnInfo::parse(&server).unwrap().with_dbname(info.dbname())).await;
        worker.run(FORGED).await;
        worker.run(&format!("{FORGED} RETURNING pg_advisory_lock(1)")).await;
        let columns = "SELECT DISTINCT session_role, session_pid, abs(extract(epoch FROM clock_timestamp() - at)) < 60 FROM locktop_audit";
        assert_eq!(owner.ask(columns).await, format!("{role}|{}|t", worker.pid), "{version}");
        owner.run(FORGED).await;
        let last =
            "SELECT session_role, session_pid, at = '2001-01-01' FROM locktop_audit ORDER BY id DESC LIMIT 1";
        assert_eq!(owner.ask(last).await, "boss|1|t", "{version}");
    }
}

/// As `pg_dump --data-only --inserts` writes them.
#[tokio::test]
async fn leases_are_read_from_a_dump_as_they_were() {
    for version in versions() {
        let info = installed(version).await;
        let owner = Session::open(&info).await;
        owner
            .run(
                "INSERT INTO distlock (id, expired_time, owner, ts, token, acquired_at, released_at) OVERRIDING SYSTEM VALUE
                 VALUES (1, '1 hour', 'a', '2026-01-02', 41, '2026-01-01', NULL), (2, '1 hour', 'b', '2026-01-02', 42, '2026-01-01', '2026-01-03')",
            )
            .await;
        let read = "SELECT id, token, acquired_at = '2026-01-01', released_at = '2026-01-03' FROM distlock ORDER BY id";
        assert_eq!(owner.ask(read).await, "1|41|t|-\n2|42|t|t", "{version}");
        // A new one is acquired now, even if the statement sets a time in the future.
        owner.run("INSERT INTO distlock (id, expired_time, owner, ts, acquired_at) VALUES (3, '1 hour', 'c', now(), '2100-01-01')").await;
        let new =
            "SELECT abs(extract(epoch FROM clock_timestamp() - acquired_at)) < 60 FROM distlock WHERE id = 3";
        assert_eq!(owner.ask(new).await, "t", "{version}");
    }
}
