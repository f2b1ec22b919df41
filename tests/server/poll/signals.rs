//! Which role may signal and see which session: the prediction, compared with what the server then does.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::Text;
use locktop::model::backend::Backend;
use locktop::model::plan::{Rights, Verb};
use locktop::model::snapshot::Snapshot;
use locktop::pg::poll::PollConnection;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::helpers::{client, info, info_of, on_every_version_with, patient, pid, poll_until};

/// Roles, the statements that make each, and the first version that has it.
const ROLES: [(&str, &str, u32); 9] = [
    ("plain", "", 14),
    ("member", "GRANT app TO member", 14),
    (
        "stranger",
        "ALTER ROLE stranger NOINHERIT; GRANT app, pg_signal_backend, pg_read_all_stats TO stranger",
        14,
    ),
    ("half", "GRANT pg_signal_backend TO half WITH INHERIT FALSE", 16),
    ("signaller", "GRANT pg_signal_backend TO signaller", 14),
    ("watcher", "GRANT pg_monitor TO watcher", 14),
    ("ops", "GRANT pg_monitor, pg_signal_backend TO ops", 14),
    ("vacuumer", "GRANT pg_monitor, pg_signal_autovacuum_worker TO vacuumer", 18),
    ("deputy", "GRANT boss TO deputy", 14),
];

/// Autovacuum of a small table takes longer than any test.
fn options() -> Options {
    Options::default()
        .with("autovacuum", "on")
        .with("autovacuum_naptime", "1s")
        .with("autovacuum_vacuum_cost_delay", "100ms")
        .with("autovacuum_vacuum_cost_limit", 1)
}

struct Role {
    name: &'static str,
    client: Client,
    snapshot: Snapshot,
    rights: Rights,
}

impl Role {
    async fn new(server: &EmbeddedServer, name: &'static str) -> Self {
        let info = info_of(server, name);
        let mut session = PollConnection::open(&info, patient()).await.unwrap();
        let snapshot = session.poll(None).await.unwrap();
        let rights = Rights::clone(&session.rights().unwrap());
        Self { name, client: client(&info).await, snapshot, rights }
    }

    /// Requests the cancellation of a query, for which the server has the same rule as for terminating a
    /// session. It has no effect on an idle session. Returns whether the server permitted it; `None` if the
    /// process has ended meanwhile, as an autovacuum worker does.
    async fn may_signal(&self, pid: i32) -> Option<bool> {
        match self.client.query_one("SELECT pg_cancel_backend($1)", &[&pid]).await {
            Ok(row) => row.get::<_, bool>(0).then_some(true),
            Err(error) => {
                assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{}", self.name);
                Some(false)
            }
        }
    }

    /// The prediction of the same.
    fn would_signal(&self, target: &Backend) -> bool {
        let lack = self.rights.lacks(Verb::Cancel, target.user.as_deref(), target.backend_type.as_deref());
        match lack.map(|lack| lack.grant) {
            None => true,
            // Only a superuser may.
            Some(None) => false,
            // The server also signals sessions that the role cannot see.
            Some(Some(statement)) => !statement.contains("pg_signal"),
        }
    }
}

/// Which process is meant: one that has ended is searched for again.
type Choice = Box<dyn Fn(&Backend) -> bool>;

/// A session or process as a superuser sees it.
async fn seen(admin: &mut PollConnection, what: impl Fn(&Backend) -> bool) -> Backend {
    let found = |snapshot: &Snapshot| snapshot.backends.last_rows().iter().find(|row| what(row)).cloned();
    let snapshot = poll_until(admin, |snapshot| found(snapshot).is_some()).await;
    found(&snapshot).unwrap()
}

fn is(kind: &str) -> impl Fn(&Backend) -> bool {
    move |backend| backend.backend_type.as_deref() == Some(kind)
}

#[tokio::test]
async fn the_predicted_right_to_signal_matches_the_server() {
    on_every_version_with(options(), async |server| {
        let admin = client(&info(&server)).await;
        admin.batch_execute("CREATE ROLE app LOGIN; CREATE ROLE boss LOGIN SUPERUSER").await.unwrap();
        admin
            .batch_execute(
                "CREATE TABLE wide AS SELECT repeat('x', 1000) FROM generate_series(1, 20000); DELETE FROM wide",
            )
            .await
            .unwrap();
        let mut watch = PollConnection::open(&info(&server), patient()).await.unwrap();
        let (app, boss) = (client(&info_of(&server, "app")).await, client(&info_of(&server, "boss")).await);
        let (app, boss) = (pid(&app).await, pid(&boss).await);
        let version = watch.server().version_num / 10_000;
        let mut checked = 0;
        for (name, made_by, from) in ROLES {
            if version < from {
                continue;
            }
            admin.batch_execute(&format!("CREATE ROLE {name} LOGIN; {made_by}")).await.unwrap();
            let own = client(&info_of(&server, name)).await;
            let own = pid(&own).await;
            let role = Role::new(&server, name).await;
            let is_pid = |pid| move |backend: &Backend| backend.pid == pid;
            let targets: [Choice; 6] = [
                Box::new(is_pid(app)),
                Box::new(is_pid(boss)),
                Box::new(is_pid(own)),
                Box::new(is("autovacuum launcher")),
                Box::new(is("logical replication launcher")),
                Box::new(is("autovacuum worker")),
            ];
            for target in &targets {
                let (target, may) = loop {
                    let target = seen(&mut watch, target).await;
                    if let Some(may) = role.may_signal(target.pid).await {
                        break (target, may);
                    }
                };
                let what = format!("{version} {name} {:?} {:?}", target.user, target.backend_type);
                assert_eq!(may, role.would_signal(&target), "{what}");
                let shown = role.snapshot.backend(target.pid).map(|backend| backend.backend_start.is_some());
                if let Some(shown) = shown {
                    assert_eq!(shown, role.rights.sees(target.user.as_deref()), "{what}");
                }
                checked += 1;
            }
        }
        assert!(checked >= 6 * 7);
    })
    .await;
}

#[tokio::test]
async fn the_grant_that_is_named_is_enough_and_no_part_of_it_too_much() {
    on_every_version_with(Options::default(), async |server| {
        let admin = client(&info(&server)).await;
        admin.batch_execute("CREATE ROLE app LOGIN; CREATE ROLE boss SUPERUSER").await.unwrap();
        let app = client(&info_of(&server, "app")).await;
        let app = pid(&app).await;
        let version =
            PollConnection::open(&info(&server), patient()).await.unwrap().server().version_num / 10_000;
        for (name, made_by, from) in ROLES {
            if version < from {
                continue;
            }
            admin.batch_execute(&format!("CREATE ROLE {name} LOGIN; {made_by}")).await.unwrap();
            let role = Role::new(&server, name).await;
            let Some(lack) = role.rights.lacks(Verb::Terminate, Some("app"), Some("client backend")) else {
                assert!(
                    role.rights.sees(Some("app")) && role.may_signal(app).await == Some(true),
                    "{version} {name}"
                );
                continue;
            };
            let statement = lack.grant.as_deref().unwrap();
            admin.batch_execute(statement).await.unwrap();
            let role = Role::new(&server, name).await;
            let lack = role.rights.lacks(Verb::Terminate, Some("app"), Some("client backend"));
            assert_eq!(lack, None, "{version} {name} {statement}");
            assert!(role.may_signal(app).await == Some(true), "{version} {name} {statement}");
            let seen = role.snapshot.backend(app).unwrap();
            assert!(seen.backend_start.is_some(), "{version} {name} {statement}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_crowd_of_roles_is_not_read() {
    on_every_version_with(Options::default(), async |server| {
        let admin = client(&info(&server)).await;
        admin
            .batch_execute(
                "DO $$ BEGIN FOR i IN 1..1500 LOOP EXECUTE format('CREATE ROLE crowd_%s', i); END LOOP; END $$;
                 CREATE ROLE nobody LOGIN; CREATE ROLE busy LOGIN;
                 DO $$ BEGIN FOR i IN 1..1200 LOOP EXECUTE format('GRANT crowd_%s TO busy', i); END LOOP; END $$;",
            )
            .await
            .unwrap();
        let nobody = Role::new(&server, "nobody").await.rights;
        assert_eq!((&*nobody.role, nobody.member_of.len(), nobody.partial), ("nobody", 1, false));
        assert_eq!(nobody.superusers, [Text::from("postgres")]);
        let busy = Role::new(&server, "busy").await.rights;
        assert_eq!((busy.member_of.len(), busy.partial), (1000, true));
        // In doubt the server is asked.
        assert_eq!(busy.lacks(Verb::Terminate, Some("crowd_1200"), Some("client backend")), None);
    })
    .await;
}
