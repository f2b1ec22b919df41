//! A role with fewer rights: each target has its own result, which names the missing one.

use std::sync::Arc;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::plan::{Outcome, TargetKind, Verb};
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::Client;

use super::stage::{Hands, Line, Notes, Session, command, is_connected, seen};
use super::support::{self, open};

/// The same server as another role.
fn as_role(info: &ConnInfo, server: &str, role: &str) -> ConnInfo {
    ConnInfo::parse(&server.replace("user=postgres", &format!("user={role}")))
        .unwrap()
        .with_dbname(info.dbname())
}

struct Roles {
    admin: Client,
    info: ConnInfo,
    conninfo: String,
}

impl Roles {
    async fn on(server: &EmbeddedServer) -> Self {
        let info = support::database(server).await;
        let admin = open(&info).await.client;
        Self { admin, conninfo: server.conninfo(), info }
    }

    /// A role of this database's own.
    async fn role(&self, name: &str, grants: &[&str]) -> String {
        let role = format!("{name}_{}", self.info.dbname());
        self.admin.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
        for grant in grants {
            self.admin.batch_execute(&format!("GRANT {grant} TO {role}")).await.unwrap();
        }
        role
    }

    async fn hands(&self, role: &str) -> Hands {
        let client = Arc::new(open(&as_role(&self.info, &self.conninfo, role)).await.client);
        Hands::with(Line { client, pids: Vec::new() }, Notes::default())
    }

    async fn session(&self, role: &str) -> Session {
        Session::open(&as_role(&self.info, &self.conninfo, role)).await
    }
}

#[tokio::test]
async fn the_missing_grant_is_reported_to_a_role_without_rights() {
    for version in support::versions() {
        let roles = Roles::on(support::server_of(version).await).await;
        let (app, viewer) =
            (roles.role("app", &[]).await, roles.role("viewer", &["pg_read_all_stats"]).await);
        let blind = roles.role("blind", &["pg_signal_backend"]).await;
        let session = roles.session(&app).await;
        let target = TargetKind::Session(seen(&roles.admin, session.pid).await);
        let (outcome, detail) = roles.hands(&viewer).await.one(Verb::Terminate, target.clone()).await;
        assert_eq!(outcome, Outcome::Forbidden, "{detail}");
        let grants = format!("GRANT pg_signal_backend TO \"{viewer}\", or GRANT \"{app}\" TO \"{viewer}\"");
        assert!(detail.contains("42501") && detail.ends_with(&grants), "{detail}");
        // A role that may signal, but does not see the session: in doubt nothing is done.
        let (outcome, detail) = roles.hands(&blind).await.one(Verb::Terminate, target.clone()).await;
        assert_eq!(outcome, Outcome::Forbidden, "{detail}");
        assert!(detail.ends_with(&format!("GRANT pg_read_all_stats TO \"{blind}\"")), "{detail}");
        assert!(is_connected(&roles.admin, session.pid).await);
        // With that grant it works.
        roles.admin.batch_execute(&format!("GRANT pg_read_all_stats TO {blind}")).await.unwrap();
        let (outcome, detail) = roles.hands(&blind).await.one(Verb::Terminate, target).await;
        assert_eq!(outcome, Outcome::Done, "{detail}");
    }
}

#[tokio::test]
async fn a_batch_of_different_owners_has_a_result_for_each() {
    for version in support::versions() {
        let options = Options { version: Some(version), ..Options::default() };
        let options = options.with("autovacuum", "on").with("autovacuum_naptime", 1);
        let server = EmbeddedServer::start(options).await.unwrap();
        let roles = Roles::on(&server).await;
        let ops = roles.role("ops", &["pg_read_all_stats", "pg_signal_backend"]).await;
        let dba = roles.role("dba", &[]).await;
        roles.admin.batch_execute(&format!("ALTER ROLE {dba} SUPERUSER")).await.unwrap();
        let (superuser, own, other) =
            (roles.session(&dba).await, roles.session(&ops).await, roles.session(&ops).await);
        let vacuum = autovacuum(&roles).await;
        let pids = [superuser.pid, own.pid, vacuum, other.pid];
        let mut targets = Vec::new();
        for pid in pids {
            targets.push(TargetKind::Session(seen(&roles.admin, pid).await));
        }
        let mut hands = roles.hands(&ops).await;
        let report = hands.act(command(Verb::Terminate, targets.clone())).await;
        let details: Vec<&str> = report.results.iter().map(|result| result.detail.as_str()).collect();
        let outcomes: Vec<Outcome> = report.results.iter().map(|result| result.outcome).collect();
        assert_eq!(
            outcomes,
            [Outcome::Forbidden, Outcome::Done, Outcome::Forbidden, Outcome::Done],
            "{version}: {details:?}"
        );
        assert!(details[0].contains("it is a superuser's"), "{details:?}");
        let expected = if version >= 18 {
            "GRANT pg_signal_autovacuum_worker TO"
        } else {
            "only a superuser can terminate an autovacuum worker"
        };
        assert!(details[2].contains(expected), "{details:?}");
        assert!(is_connected(&roles.admin, superuser.pid).await && is_connected(&roles.admin, vacuum).await);
        if version >= 18 {
            roles.admin.batch_execute(&format!("GRANT pg_signal_autovacuum_worker TO {ops}")).await.unwrap();
            let (outcome, detail) = hands.one(Verb::Terminate, targets.swap_remove(2)).await;
            assert_eq!(outcome, Outcome::Done, "{detail}");
        }
    }
}

/// An autovacuum worker that is slow on a table.
async fn autovacuum(roles: &Roles) -> i32 {
    let admin = &roles.admin;
    admin
        .batch_execute(
            "CREATE TABLE dead (id int) WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1,
                                               autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0);
             INSERT INTO dead SELECT generate_series(1, 200000);
             DELETE FROM dead WHERE id % 2 = 0;",
        )
        .await
        .unwrap();
    // The lock is taken after the transaction that it does this in.
    let sql = "SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.granted
                WHERE a.backend_type = 'autovacuum worker' AND l.relation = 'dead'::regclass
                  AND l.mode = 'ShareUpdateExclusiveLock' AND l.database = (SELECT oid FROM pg_database
                                                                              WHERE datname = current_database())";
    let mut worker = 0;
    support::wait_until("an autovacuum worker is at it", async || {
        let row = admin.query_opt(sql, &[]).await.unwrap();
        worker = row.map_or(0, |row| row.get(0));
        worker != 0
    })
    .await;
    worker
}
