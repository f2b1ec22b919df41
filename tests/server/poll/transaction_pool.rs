//! Polls through a pooler in transaction mode: they see as much as a poll over its own session, and a section that fails there fails alone.

use std::collections::BTreeSet;

use locktop::model::backend::Backend;
use locktop::model::snapshot::{Pooling, Snapshot};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::jobs::sources::TableLocations;
use locktop::pg::poll::{OpenError, PollConnection, PollError, PollLimits};
use locktop::schema::{SchemaName, script};

use super::helpers::patient;
use crate::pooler::Pooler;
use crate::support::{self, open};

const ROWS: &str = "INSERT INTO locktop.scheduled_tasks (task_name, task_type, next_run_at, timeout) VALUES
        ('sync', 'sql', now() + interval '1 hour', '10 minutes'), ('late', 'sql', now() - interval '1 hour', '30 minutes');
    INSERT INTO locktop.distlock (id, owner, ts, expired_time) VALUES (1, 'node7', now() - interval '41 seconds', '20 seconds');
    CREATE TABLE held (id int PRIMARY KEY); INSERT INTO held VALUES (1);";

/// The parts of a snapshot that do not depend on the session that polls.
fn seen(snapshot: &Snapshot) -> BTreeSet<String> {
    let own_pids: BTreeSet<i32> = (snapshot.backends.last_rows().iter())
        .filter(|backend| backend.application.as_deref().is_some_and(|name| name.contains("locktop")))
        .map(|backend| backend.pid)
        .collect();
    let locks =
        snapshot.locks.last_rows().iter().filter(|lock| lock.pid.is_none_or(|pid| !own_pids.contains(&pid)));
    let mut seen: BTreeSet<String> = locks.map(|lock| format!("{lock:?}")).collect();
    let others = snapshot.backends.last_rows().iter().filter(|backend| !own_pids.contains(&backend.pid));
    let query = |backend: &Backend| backend.query.as_ref().map(|query| query.unredacted().to_string());
    seen.extend(others.map(|backend| format!("{} {:?} {:?}", backend.pid, backend.user, query(backend))));
    for set in snapshot.task_sets.iter() {
        seen.insert(format!("{:?} {:?} {:?}", set.tables, set.tasks.last_rows(), set.executions.last_rows()));
    }
    for leases in &snapshot.sources.leases {
        seen.insert(format!("{:?} {:?}", leases.source.name, leases.section.last_rows()));
    }
    seen.extend(snapshot.names.relations.values().map(ToString::to_string));
    seen
}

/// The errors of sections that are old.
fn errors(snapshot: &Snapshot) -> Vec<String> {
    let of_tasks = (snapshot.task_sets.iter()).filter_map(|set| set.tasks.error.as_ref());
    let of_leases = snapshot.sources.leases.iter().filter_map(|table| table.section.error.as_ref());
    let of_server =
        [&snapshot.locks.error, &snapshot.backends.error, &snapshot.prepared.error, &snapshot.server.error];
    let of_server = of_server.into_iter().filter_map(Option::as_ref);
    of_server.chain(of_tasks).chain(of_leases).map(ToString::to_string).collect()
}

async fn poll(session: &mut PollConnection, before: Option<&Snapshot>) -> Snapshot {
    session.poll(before).await.unwrap()
}

#[tokio::test]
async fn polls_through_a_pooler_see_as_much_and_their_sections_fail_alone() {
    for version in support::versions() {
        let server = support::server_of(version).await;
        let info = support::database(server).await;
        let admin = open(&info).await.client;
        let own = script(&SchemaName::new("locktop").unwrap());
        admin.batch_execute(&format!("{own}{ROWS}")).await.unwrap();
        let (holder, waiter) = (open(&info).await.client, open(&info).await.client);
        holder.batch_execute("BEGIN; UPDATE held SET id = 1; SELECT pg_advisory_lock(7)").await.unwrap();
        let waits = tokio::spawn(async move { waiter.batch_execute("UPDATE held SET id = 2").await });
        let blocked = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND database IS NULL)";
        support::wait_until("a session waits", async || admin.query_one(blocked, &[]).await.unwrap().get(0))
            .await;

        let limits = patient();
        let pooler = Pooler::start_with(server, "transaction", "server_round_robin = 1");
        let pool = ConnInfo::parse(&pooler.target(&info)).unwrap().with_application_name("locktop");
        let mut own = PollConnection::open(&info, limits.clone()).await.unwrap();
        let mut connection = PollConnection::open(&pool, limits.clone()).await.unwrap();
        assert_eq!(
            (own.server().pooling, connection.server().pooling),
            (Pooling::None, Pooling::Transactions)
        );
        let (mut direct, mut through) = (poll(&mut own, None).await, poll(&mut connection, None).await);
        for _ in 0..3 {
            direct = poll(&mut own, Some(&direct)).await;
            through = poll(&mut connection, Some(&through)).await;
            assert_eq!(errors(&through), [""; 0]);
            assert_eq!(seen(&through), seen(&direct), "PostgreSQL {version}");
            assert_eq!(through.answers.len(), direct.answers.len());
            let own_pid = through.server().unwrap().own_pid;
            assert!(through.backends.last_rows().iter().any(|backend| backend.pid == own_pid));
        }
        assert!(connection.rights().is_some() && own.rights() == connection.rights());

        // Locked: only that section is old, and the others are still read.
        admin.batch_execute("BEGIN; LOCK TABLE locktop.scheduled_tasks").await.unwrap();
        through = poll(&mut connection, Some(&through)).await;
        let errors_now = errors(&through);
        assert!(
            !errors_now.is_empty() && errors_now.iter().all(|error| error.contains("locked")),
            "{errors_now:?}"
        );
        assert!(!through.sources.leases[0].section.last_rows().is_empty());
        admin.batch_execute("COMMIT").await.unwrap();
        support::wait_until("it is read again", async || {
            through = poll(&mut connection, Some(&through)).await;
            errors(&through).is_empty()
        })
        .await;

        // An invalid table name in the config.
        let tables = TableLocations::default().with("scheduled_tasks", "no such.place.anywhere.at all");
        let mut wrong = PollConnection::open(&pool, PollLimits { tables, ..limits }).await.unwrap();
        let snapshot = poll(&mut wrong, None).await;
        let errors_now = errors(&snapshot);
        assert!(
            errors_now.len() == 1 && errors_now[0].starts_with("[tables] in the config: "),
            "{errors_now:?}"
        );
        assert!(!snapshot.locks.last_rows().is_empty() && !snapshot.sources.leases.is_empty());

        holder.batch_execute("ROLLBACK").await.unwrap();
        waits.await.unwrap().unwrap();
    }
}

/// A session that is assumed to be locktop's own but is shared: detected at the latest when the next one
/// finds state of the first.
#[tokio::test]
async fn a_session_found_to_be_pooled_is_used_by_transaction() {
    let server = support::server().await;
    let info = support::database(server).await;
    let pooler = Pooler::start_with(server, "transaction", "default_pool_size = 1");
    let pool = ConnInfo::parse(&pooler.target(&info)).unwrap().with_application_name("locktop");
    let open_behind = async |pooling| PollConnection::open_behind(&pool, patient(), Some(pooling)).await;
    let misjudged = open_behind(Pooling::Sessions).await.unwrap();
    misjudged.close();
    let error = open_behind(Pooling::Sessions).await.unwrap_err();
    assert!(matches!(error, OpenError::Pooled), "{error}");

    // The state that it left causes at most one error in each session of the pool.
    let mut refused = Vec::new();
    let mut connection = loop {
        match open_behind(Pooling::Transactions).await {
            Ok(connection) => break connection,
            Err(error) => refused.push(error.to_string()),
        }
        assert!(refused.len() <= 1, "{refused:?}");
    };
    let first = poll(&mut connection, None).await;
    let then = poll(&mut connection, Some(&first)).await;
    assert_eq!((errors(&then), then.server().unwrap().pooling), (Vec::new(), Pooling::Transactions));
}

/// However far away the pooler is: the release within a poll has the timeout of a poll, not that of names.
#[tokio::test]
async fn a_release_takes_at_most_the_time_of_a_poll() {
    let server = support::server().await;
    let info = support::database(server).await;
    let pooler = Pooler::start(server, "transaction");
    let pool = ConnInfo::parse(&pooler.target(&info)).unwrap().with_application_name("locktop");
    let limits = PollLimits { name_timeout: std::time::Duration::ZERO, ..PollLimits::default() };
    let mut connection = PollConnection::open(&pool, limits).await.unwrap();
    assert_eq!(connection.server().pooling, Pooling::Transactions);
    let first = poll(&mut connection, None).await;
    let then = poll(&mut connection, Some(&first)).await;
    assert_eq!(errors(&then), [""; 0]);
}

/// If a pooler keeps answers apart, the pid of another session shows the change.
#[tokio::test]
async fn a_change_of_the_backend_behind_a_pooler_is_reported() {
    let server = support::server().await;
    let info = support::database(server).await;
    let pooler = Pooler::start_with(server, "session", "admin_users = postgres");
    let pool = ConnInfo::parse(&pooler.target(&info)).unwrap().with_application_name("locktop");
    let mut session = PollConnection::open(&pool, PollLimits::default()).await.unwrap();
    assert_eq!(session.server().pooling, Pooling::Sessions);
    let before = poll(&mut session, None).await;
    // The next client that sends a statement gets that session, and keeps it.
    pooler.turn("session", "transaction").await;
    let client = session.client().unwrap();
    client.batch_execute("SELECT 1").await.unwrap();
    let other = open(&pool).await.client;
    other.batch_execute("BEGIN").await.unwrap();
    let error = session.poll(Some(&before)).await.unwrap_err();
    assert!(matches!(error, PollError::Pooled), "{error}");
    other.batch_execute("COMMIT").await.unwrap();
}
