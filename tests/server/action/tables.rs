//! Leases, tasks and items of tables: changed only if the row is exactly the one that was seen.

use locktop::model::plan::{Outcome, PublishedHolder, PublishedTarget, RowTarget, TargetKind, Verb};
use locktop::model::table_rows::{Execution, Item, Lease, Schedule};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tokio_postgres::Client;

use super::stage::{self, Hands, with};
use super::support::{self, open};

/// The tables as published.
const PRINTED: &str = include_str!("../systems/printed.sql");

struct Place {
    client: Client,
    hands: Hands,
    schema: &'static str,
    is_own: bool,
}

impl Place {
    async fn own(version: u32) -> Self {
        let info = support::database(support::server_of(version).await).await;
        let mut connection = open(&info).await;
        schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
        Self::at(&info, "locktop", true).await
    }

    async fn printed(version: u32) -> Self {
        let info = support::database(support::server_of(version).await).await;
        // The zone in which times without one are meant.
        let zone = format!("ALTER DATABASE {} SET TimeZone = 'Asia/Shanghai'", info.dbname());
        open(&info).await.client.batch_execute(&zone).await.unwrap();
        open(&info).await.client.batch_execute(PRINTED).await.unwrap();
        Self::at(&info, "public", false).await
    }

    async fn at(info: &ConnInfo, schema: &'static str, is_own: bool) -> Self {
        let client = open(info).await.client;
        client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
        Self { client, hands: Hands::of(info).await, schema, is_own }
    }

    async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    /// The first column of the only row, as text.
    async fn ask(&self, sql: &str) -> String {
        self.client.query_one(&format!("SELECT ({sql})::text"), &[]).await.unwrap().get(0)
    }

    async fn oid(&self, table: &str) -> u32 {
        let sql = format!("SELECT '{}.{table}'::regclass::oid", self.schema);
        self.client.query_one(&sql, &[]).await.unwrap().get(0)
    }

    async fn lease(&self) -> RowTarget<Lease> {
        let token = if self.is_own { "token" } else { "NULL::int8" };
        let sql = format!(
            "SELECT id::text, owner, ts::timestamptz, EXTRACT(epoch FROM expired_time)::float8, {token} FROM distlock"
        );
        let row = self.client.query_one(&sql, &[]).await.unwrap();
        RowTarget {
            table: self.oid("distlock").await,
            source: format!("{}.distlock", self.schema).into(),
            is_own: self.is_own,
            row: stage::lease(&row),
        }
    }

    async fn task(&self) -> RowTarget<Schedule> {
        let sql = "SELECT id::int8, task_name, is_enabled, next_run_at FROM scheduled_tasks";
        let row = self.client.query_one(sql, &[]).await.unwrap();
        RowTarget {
            table: self.oid("scheduled_tasks").await,
            source: format!("{}.scheduled_tasks", self.schema).into(),
            is_own: self.is_own,
            row: stage::task(&row),
        }
    }

    async fn item(&self) -> RowTarget<Item> {
        let attempt = if self.is_own { "attempt::int8" } else { "NULL::int8" };
        let sql = format!("SELECT id, status, worker_id, {attempt} FROM task_queue");
        let row = self.client.query_one(&sql, &[]).await.unwrap();
        RowTarget {
            table: self.oid("task_queue").await,
            source: format!("{}.task_queue", self.schema).into(),
            is_own: self.is_own,
            row: stage::item(&row),
        }
    }

    /// Checks the outcome of an action, and the words that explain it.
    async fn is(&mut self, verb: Verb, what: TargetKind, outcome: Outcome, words: &str) {
        let (found, detail) = self.hands.one(verb, what).await;
        assert_eq!(found, outcome, "{verb:?}: {detail}");
        assert!(detail.contains(words), "{verb:?}: {detail}");
    }
}

#[tokio::test]
async fn a_lease_is_ended_only_as_it_was_seen() {
    for version in support::versions() {
        let mut own = Place::own(version).await;
        own.run("SELECT lease_acquire(7, 'node1', '1 mon 1 hour')").await;
        ended_as_seen(&mut own).await;
        assert_eq!(own.ask("SELECT state FROM leases").await, "released");
        assert_eq!(own.ask("SELECT count(*) FROM locktop_audit WHERE action = 'unlocked'").await, "1");
        let mut printed = Place::printed(version).await;
        printed.run("INSERT INTO distlock VALUES (7, '1 mon 1 hour', 'node1', clock_timestamp())").await;
        ended_as_seen(&mut printed).await;
        assert_eq!(printed.ask("SELECT clock_timestamp() >= ts + expired_time FROM distlock").await, "true");
    }
}

async fn ended_as_seen(place: &mut Place) {
    let seen = place.lease().await;
    let mut others = vec![
        (with(&seen, |row| row.owner = Some("node9".into())), "its owner has changed"),
        (with(&seen, |row| row.id = "8".into()), "its row no longer exists"),
    ];
    if place.is_own {
        let token = seen.token.map(|token| token - 1);
        others.push((with(&seen, |row| row.token = token), "another owner acquired it"));
    } else {
        let (second, term) = (chrono::TimeDelta::seconds(1), chrono::TimeDelta::seconds(i64::from(i32::MAX)));
        let later = with(&seen, |row| row.renewed_at = row.renewed_at.map(|at| at + second));
        let before = with(&seen, |row| row.renewed_at = row.renewed_at.map(|at| at - term));
        others.push((later, "it was acquired again"));
        others.push((before, "it was acquired again"));
        others.push((with(&seen, |row| row.term = row.term.map(|term| term + 1.0)), "its term has changed"));
    }
    for (other, words) in others {
        place.is(Verb::Unlock, TargetKind::Lease(other), Outcome::Changed, words).await;
    }
    let dropped = RowTarget { table: 4_000_000_000, ..seen.clone() };
    place.is(Verb::Unlock, TargetKind::Lease(dropped), Outcome::Changed, "its table no longer exists").await;
    // Its holder continues to renew it meanwhile.
    place.run("UPDATE distlock SET ts = clock_timestamp()").await;
    place
        .is(Verb::Unlock, TargetKind::Lease(seen.clone()), Outcome::Done, "the lease of node1 has ended")
        .await;
    place.is(Verb::Unlock, TargetKind::Lease(seen), Outcome::Changed, "since it was seen").await;
    assert_eq!(place.ask("SELECT owner FROM distlock").await, "node1", "the owner stays");
}

#[tokio::test]
async fn a_table_that_was_made_again_is_another_one() {
    let version = support::oldest();
    let mut place = Place::printed(version).await;
    let row = "INSERT INTO distlock VALUES (7, '1 hour', 'node1', '2100-01-01')";
    place.run(row).await;
    let seen = place.lease().await;
    place.run("DROP TABLE distlock; CREATE TABLE distlock (id int, expired_time interval, owner text, ts timestamptz)").await;
    place.run(row).await;
    place.is(Verb::Unlock, TargetKind::Lease(seen), Outcome::Changed, "its table no longer exists").await;
    // A row of a child table belongs to another table, and two rows of one id cannot be distinguished.
    place
        .run(&format!("CREATE TABLE child () INHERITS (distlock); {}", row.replace("distlock", "child")))
        .await;
    let seen = RowTarget {
        table: place.oid("distlock").await,
        ..{
            let sql = "SELECT ts::timestamptz FROM ONLY distlock";
            let renewed_at = place.client.query_one(sql, &[]).await.unwrap().get(0);
            RowTarget {
                table: 0,
                source: "public.distlock".into(),
                is_own: false,
                row: Lease {
                    id: "7".into(),
                    owner: Some("node1".into()),
                    renewed_at: Some(renewed_at),
                    term: Some(3600.0),
                    token: None,
                    ..Lease::default()
                },
            }
        }
    };
    place.run(row).await;
    place.is(Verb::Unlock, TargetKind::Lease(seen.clone()), Outcome::Refused, "2 rows have this id").await;
    place.run("DELETE FROM ONLY distlock WHERE ctid = (SELECT max(ctid) FROM ONLY distlock)").await;
    place.is(Verb::Unlock, TargetKind::Lease(seen), Outcome::Done, "the lease of node1 has ended").await;
    assert_eq!(place.ask("SELECT expired_time FROM child").await, "01:00:00");
}

#[tokio::test]
async fn a_task_is_changed_only_as_it_was_seen() {
    for version in support::versions() {
        let mut own = Place::own(version).await;
        own.run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('a', 'x', now() + interval '1 day')")
            .await;
        changed_as_seen(&mut own).await;
        let noted = "SELECT string_agg(action || ' ' || task_id || ' ' || detail, ', ' ORDER BY id) FROM locktop_audit";
        assert_eq!(
            own.ask(noted).await,
            "disable 1 a: is_enabled = false, enable 1 a: is_enabled = true, \
             make_due 1 a: next_run_at = clock_timestamp()"
        );
        // Its end would set the time again.
        own.run("SELECT try_acquire_task_lock(1, 'w')").await;
        let task = TargetKind::Task(own.task().await);
        own.is(Verb::MakeDue, task, Outcome::Changed, "it is running now").await;
        let mut printed = Place::printed(version).await;
        // As in the article, but for the zone.
        printed
            .run(
                "CREATE TABLE scheduled_tasks (id serial PRIMARY KEY, task_name text, is_enabled boolean,
                                               next_run_at timestamp);
                 INSERT INTO scheduled_tasks (task_name, is_enabled, next_run_at) VALUES ('a', true, localtimestamp + interval '1 day')",
            )
            .await;
        let mut seen = printed
            .client
            .query_one("SELECT next_run_at::timestamptz FROM scheduled_tasks", &[])
            .await
            .unwrap();
        let task = |row: &tokio_postgres::Row, table| RowTarget {
            table,
            source: "public.scheduled_tasks".into(),
            is_own: false,
            row: Schedule {
                id: 1,
                name: Some("a".into()),
                enabled: Some(true),
                next_run_at: row.get(0),
                ..Schedule::default()
            },
        };
        let table = printed.oid("scheduled_tasks").await;
        printed.is(Verb::MakeDue, TargetKind::Task(task(&seen, table)), Outcome::Done, "due now").await;
        seen = printed
            .client
            .query_one("SELECT next_run_at::timestamptz FROM scheduled_tasks", &[])
            .await
            .unwrap();
        let due = "SELECT abs(EXTRACT(epoch FROM localtimestamp - next_run_at)) < 60 FROM scheduled_tasks";
        assert_eq!(printed.ask(due).await, "true", "in the zone that its readers mean");
        printed.is(Verb::Disable, TargetKind::Task(task(&seen, table)), Outcome::Done, "disabled").await;
        assert_eq!(printed.ask("SELECT is_enabled FROM scheduled_tasks").await, "false");
    }
}

async fn changed_as_seen(place: &mut Place) {
    let seen = place.task().await;
    let later = seen.next_run_at.map(|at| at + chrono::TimeDelta::microseconds(1));
    for (other, words) in [
        (with(&seen, |row| row.enabled = Some(false)), "it was enabled or disabled"),
        (with(&seen, |row| row.next_run_at = later), "its due time has changed"),
        (with(&seen, |row| row.next_run_at = None), "its due time has changed"),
        (with(&seen, |row| row.name = Some("b".into())), "its name has changed"),
        (with(&seen, |row| row.id = seen.id + 1), "its row no longer exists"),
    ] {
        for verb in [Verb::Enable, Verb::Disable, Verb::MakeDue] {
            place.is(verb, TargetKind::Task(other.clone()), Outcome::Changed, words).await;
        }
    }
    assert_eq!(place.task().await, seen, "nothing was changed");
    place.is(Verb::Disable, TargetKind::Task(seen.clone()), Outcome::Done, "disabled").await;
    place.is(Verb::Disable, TargetKind::Task(seen), Outcome::Changed, "it was enabled or disabled").await;
    let seen = place.task().await;
    assert_eq!(seen.enabled, Some(false));
    place.is(Verb::Enable, TargetKind::Task(seen), Outcome::Done, "enabled").await;
    let seen = place.task().await;
    place.is(Verb::MakeDue, TargetKind::Task(seen), Outcome::Done, "due now").await;
    assert_eq!(place.ask("SELECT is_enabled AND next_run_at <= now() FROM scheduled_tasks").await, "true");
}

#[tokio::test]
async fn a_task_and_an_item_are_due_an_hour_later() {
    for version in support::versions() {
        let mut own = Place::own(version).await;
        own.run(
            "INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('a', 'x', now() - interval '1 day');
             INSERT INTO task_queue (task_name) VALUES ('b')",
        )
        .await;
        let seen = own.task().await;
        own.is(Verb::PutOff, TargetKind::Task(seen.clone()), Outcome::Done, "due an hour later").await;
        let in_hours = |column: &str, table: &str| {
            format!("SELECT round(EXTRACT(epoch FROM {column} - clock_timestamp()) / 3600) FROM {table}")
        };
        assert_eq!(own.ask(&in_hours("next_run_at", "scheduled_tasks")).await, "1", "from now on");
        own.is(Verb::PutOff, TargetKind::Task(seen), Outcome::Changed, "its due time has changed").await;
        let again = TargetKind::Task(own.task().await);
        own.is(Verb::PutOff, again, Outcome::Done, "due an hour later").await;
        assert_eq!(own.ask(&in_hours("next_run_at", "scheduled_tasks")).await, "2", "from then on");
        assert_eq!(own.ask("SELECT is_enabled FROM scheduled_tasks").await, "true");

        let pending = own.item().await;
        let other = with(&pending, |row| row.attempt = Some(7));
        own.is(Verb::PutOff, TargetKind::Item(other), Outcome::Changed, "another attempt began").await;
        own.is(Verb::PutOff, TargetKind::Item(pending.clone()), Outcome::Done, "due an hour later").await;
        assert_eq!(own.ask(&in_hours("not_before", "task_queue")).await, "1");
        assert_eq!(own.ask("SELECT count(*) FROM claim_queue_items('w', 1)").await, "0", "no worker gets it");
        let noted = "SELECT string_agg(detail, ', ' ORDER BY id) FROM locktop_audit WHERE action = 'put_off'";
        assert_eq!(
            own.ask(noted).await,
            "a: next_run_at = greatest(t.next_run_at, clock_timestamp()) + interval '1 hour', \
             a: next_run_at = greatest(t.next_run_at, clock_timestamp()) + interval '1 hour', \
             item 1 of the work queue: due an hour later"
        );
        // The worker that runs it or works on it sets the time.
        own.run("UPDATE scheduled_tasks SET next_run_at = now(); SELECT try_acquire_task_lock(1, 'w')").await;
        let task = TargetKind::Task(own.task().await);
        own.is(Verb::PutOff, task, Outcome::Changed, "it is running now").await;
        own.run("UPDATE task_queue SET not_before = NULL; SELECT * FROM claim_queue_items('w', 1)").await;
        own.is(Verb::PutOff, TargetKind::Item(pending), Outcome::Changed, "its status has changed").await;
        let taken = TargetKind::Item(own.item().await);
        own.is(Verb::PutOff, taken, Outcome::Refused, "is not possible for an item that is processing").await;
    }
}

#[tokio::test]
async fn rows_without_a_due_timestamp_cannot_be_put_off() {
    let version = support::oldest();
    let mut place = Place::printed(version).await;
    let task = |table, at: Option<_>| RowTarget {
        table,
        source: "public.scheduled_tasks".into(),
        is_own: false,
        row: Schedule { id: 1, name: None, enabled: None, next_run_at: at, ..Schedule::default() },
    };
    for (kind, outcome, words) in [
        ("timestamp", Outcome::Done, "due an hour later"),
        ("date", Outcome::Refused, "next_run_at of public.scheduled_tasks is not a time"),
    ] {
        place
            .run(&format!(
                "DROP TABLE IF EXISTS scheduled_tasks;
                 CREATE TABLE scheduled_tasks (id serial PRIMARY KEY, next_run_at {kind});
                 INSERT INTO scheduled_tasks (next_run_at) VALUES (localtimestamp)"
            ))
            .await;
        let sql = "SELECT next_run_at::timestamptz FROM scheduled_tasks";
        let at = place.client.query_one(sql, &[]).await.unwrap().get(0);
        let seen = task(place.oid("scheduled_tasks").await, at);
        place.is(Verb::PutOff, TargetKind::Task(seen), outcome, words).await;
    }
    place.run("INSERT INTO task_queue (task_name) VALUES ('b')").await;
    let item = TargetKind::Item(place.item().await);
    place.is(Verb::PutOff, item, Outcome::Refused, "is not possible for an item that is pending").await;
}

#[tokio::test]
async fn a_queue_item_is_not_taken_from_a_live_worker() {
    for version in support::versions() {
        let mut place = Place::own(version).await;
        place.run("INSERT INTO task_queue (task_name) VALUES ('a')").await;
        let pending = place.item().await;
        place
            .is(
                Verb::Requeue,
                TargetKind::Item(pending.clone()),
                Outcome::Refused,
                "is not possible for an item that is pending",
            )
            .await;
        place.is(Verb::SetAside, TargetKind::Item(pending.clone()), Outcome::Done, "set aside").await;
        place.is(Verb::SetAside, TargetKind::Item(pending), Outcome::Changed, "its status has changed").await;
        let failed = place.item().await;
        place.is(Verb::Requeue, TargetKind::Item(failed), Outcome::Done, "pending again").await;
        place.run("SELECT * FROM claim_queue_items('w', 1)").await;
        let claimed = place.item().await;
        assert_eq!(claimed.status.as_deref(), Some("processing"));
        for verb in [Verb::Requeue, Verb::SetAside] {
            place
                .is(verb, TargetKind::Item(claimed.clone()), Outcome::Refused, "has it in the session of pid")
                .await;
        }
        let other = with(&claimed, |row| row.attempt = claimed.attempt.map(|attempt| attempt + 1));
        place.is(Verb::Requeue, TargetKind::Item(other), Outcome::Changed, "another attempt began").await;
        let other = with(&claimed, |row| row.worker = Some("v".into()));
        place.is(Verb::Requeue, TargetKind::Item(other), Outcome::Changed, "another worker holds it").await;
        // Another session took it, and has ended.
        place.run("UPDATE task_queue SET backend_start = backend_start - interval '1 second'").await;
        place.is(Verb::Requeue, TargetKind::Item(claimed.clone()), Outcome::Done, "pending again").await;
        place.is(Verb::Requeue, TargetKind::Item(claimed), Outcome::Changed, "its status has changed").await;
    }
}

#[tokio::test]
async fn a_published_item_is_left_alone_while_anybody_may_work_on_it() {
    for version in support::versions() {
        let mut place = Place::printed(version).await;
        place
            .run(
                "INSERT INTO task_queue (task_name, status, worker_id, started_at)
                      VALUES ('a', 'processing', 'w', clock_timestamp())",
            )
            .await;
        let seen = place.item().await;
        // As the article's worker holds it: by the row, then by the key.
        place.run("BEGIN; SELECT FROM task_queue FOR UPDATE").await;
        place.is(Verb::Requeue, TargetKind::Item(seen.clone()), Outcome::Refused, "its row is locked").await;
        place.run("COMMIT; SELECT pg_advisory_lock(1)").await;
        for verb in [Verb::Requeue, Verb::SetAside] {
            place
                .is(verb, TargetKind::Item(seen.clone()), Outcome::Refused, "its advisory key is held")
                .await;
        }
        place.run("SELECT pg_advisory_unlock(1)").await;
        let other = with(&seen, |row| row.worker = None);
        place.is(Verb::Requeue, TargetKind::Item(other), Outcome::Changed, "another worker holds it").await;
        place.is(Verb::Requeue, TargetKind::Item(seen), Outcome::Done, "pending again").await;
        let row = "SELECT (status, worker_id, started_at) FROM task_queue";
        assert_eq!(place.ask(row).await, "(pending,,)");
        let pending = place.item().await;
        place.is(Verb::SetAside, TargetKind::Item(pending), Outcome::Done, "set aside").await;
        assert_eq!(place.ask("SELECT status FROM task_queue").await, "failed");
        // Others hold keys in other databases of this server.
        let keys = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        assert_eq!(place.ask(keys).await, "0");
    }
}

#[tokio::test]
async fn a_published_execution_is_failed_only_while_its_key_is_free() {
    for version in support::versions() {
        let mut place = Place::printed(version).await;
        place.run(include_str!("../tasks/recipe.sql")).await;
        place.run("DELETE FROM task_execution_log").await;
        place
            .run(
                "INSERT INTO task_execution_log (task_id, worker_id, status, started_at, lock_id)
                      VALUES (1, 'worker-001', 'running', now() - interval '1 hour', 1)",
            )
            .await;
        let sql = "SELECT id::int8, worker_id, started_at::timestamptz FROM task_execution_log";
        let row = place.client.query_one(sql, &[]).await.unwrap();
        let seen = PublishedTarget {
            execution: RowTarget {
                table: place.oid("task_execution_log").await,
                source: "public.task_execution_log".into(),
                is_own: false,
                row: Execution {
                    id: row.get(0),
                    task_id: 1,
                    worker: Some(row.get::<_, String>(1).into()),
                    started_at: row.get(2),
                    ..Execution::default()
                },
            },
            name: Some("a".into()),
            key: 1,
            holder: PublishedHolder::None,
        };
        let what = |target: &PublishedTarget| TargetKind::Published(target.clone());
        place.run("BEGIN; SELECT FROM task_execution_log FOR UPDATE").await;
        place.is(Verb::Recover, what(&seen), Outcome::Refused, "its row is locked").await;
        place.run("COMMIT; SELECT pg_advisory_lock(1)").await;
        place.is(Verb::Recover, what(&seen), Outcome::Refused, "a session holds key 1").await;
        place.run("SELECT pg_advisory_unlock(1)").await;
        let other = PublishedTarget {
            execution: with(&seen.execution, |row| row.worker = Some("worker-002".into())),
            ..seen.clone()
        };
        place.is(Verb::Recover, what(&other), Outcome::Changed, "another worker holds it").await;
        let micro = chrono::TimeDelta::microseconds(1);
        let other = PublishedTarget {
            execution: with(&seen.execution, |row| row.started_at = row.started_at.map(|at| at + micro)),
            ..seen.clone()
        };
        place.is(Verb::Recover, what(&other), Outcome::Changed, "its start has changed").await;
        place.is(Verb::Recover, what(&seen), Outcome::Done, "marked as failed").await;
        let row = "SELECT status || ' ' || (completed_at IS NOT NULL) || ' ' || left(error_message, 30) FROM task_execution_log";
        assert_eq!(place.ask(row).await, "failed true its worker's session had ended");
        place.is(Verb::Recover, what(&seen), Outcome::Changed, "it has ended").await;
    }
}

#[tokio::test]
async fn the_needed_grant_is_reported_if_a_role_cannot_change_the_table() {
    let version = support::oldest();
    let place = Place::printed(version).await;
    place.run("INSERT INTO distlock VALUES (7, '1 hour', 'node1', clock_timestamp())").await;
    let seen = place.lease().await;
    let role = format!("reader_{}", place.ask("SELECT current_database()").await);
    place.run(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON distlock TO {role}")).await;
    let server =
        support::server_of(version).await.conninfo().replace("user=postgres", &format!("user={role}"));
    let database = place.ask("SELECT current_database()").await;
    let mut hands = Hands::of(&ConnInfo::parse(&server).unwrap().with_dbname(&database)).await;
    let (outcome, detail) = hands.one(Verb::Unlock, TargetKind::Lease(seen)).await;
    assert_eq!(outcome, Outcome::Forbidden, "{detail}");
    assert!(detail.contains("GRANT SELECT, UPDATE ON \"public\".\"distlock\" TO "), "{detail}");
}
