//! Returning jobs to the queues of their systems, and ending their leases: what is done, and above all what is not.

use std::sync::Arc;

use locktop::config::adapter::built_in;
use locktop::model::adapter::{Adapter, Proof};
use locktop::model::plan::{self, ActionPlan, Outcome, PlanContext, TargetKind, Verb};
use locktop::model::row_id::RowId;
use locktop::model::source_tables::NameHash;
use locktop::pg::conninfo::ConnInfo;

use super::stage::Stage;
use super::{GOOD_JOB, RIVER, SOLID_QUEUE, all};
use crate::action::stage::Hands;

const OBAN: &str = include_str!("tables/oban.sql");
const OBAN_PYTHON: &str = include_str!("tables/oban_python.sql");
const LEASES: &str = include_str!("tables/leases.sql");

/// All, and the config allows each to act.
fn allowed() -> Vec<Arc<Adapter>> {
    let allow = |adapter| Arc::new(Adapter { allows_actions: true, ..adapter });
    built_in().unwrap().into_iter().map(allow).collect()
}

/// A database with these tables, and an executor for it.
struct Ground {
    stage: Stage,
    info: ConnInfo,
    hands: Hands,
}

impl Ground {
    async fn of(ddl: &str, adapters: Vec<Arc<Adapter>>) -> Self {
        let mut stage = Stage::on(super::server().await, ddl).await;
        stage.adapters(adapters).await;
        stage.poll().await;
        stage.poll().await;
        let info = stage.info().clone();
        let hands = Hands::of(&info).await;
        Self { stage, info, hands }
    }

    fn plan_of(&self, ids: &[NameHash], verb: Verb) -> ActionPlan {
        let context = PlanContext { view: self.stage.view(), rights: None, own_pids: &[], terminated: &[] };
        plan::rows(
            &context,
            verb,
            &ids.iter()
                .map(|id| if verb == Verb::Recover { RowId::Job(*id) } else { RowId::OtherLease(*id) })
                .collect::<Vec<_>>(),
        )
    }

    /// The plan for a job of this name.
    fn job(&self, name: &str) -> ActionPlan {
        let rows = &self.stage.view().adapters.rows;
        let row = rows.iter().find(|row| row.job.name.as_deref() == Some(name));
        let row = row.unwrap_or_else(|| panic!("{name} among {rows:?}"));
        self.plan_of(&[row.id], Verb::Recover)
    }

    fn lease(&self, id: &str) -> ActionPlan {
        let view = self.stage.view();
        let of = |place: (usize, usize)| {
            &view.snapshot.as_ref().unwrap().adapters[place.0].leases.last_rows()[place.1]
        };
        let row = view.adapters.leases.iter().find(|row| *of(row.place).id == *id).unwrap();
        self.plan_of(&[row.id], Verb::Unlock)
    }

    async fn run(&self, sql: &str) {
        super::run(&self.info, sql).await;
    }

    async fn value(&self, sql: &str) -> String {
        let client = super::client(&self.info).await;
        let row = client.query_one(&format!("SELECT coalesce(({sql})::text, 'NULL')"), &[]).await.unwrap();
        row.get(0)
    }

    async fn act(&mut self, plan: &ActionPlan) -> (Outcome, String) {
        assert!(plan.refused.is_empty(), "{:?}", plan.refused);
        let [row] = plan.rows.as_slice() else { panic!("{:?}", plan.rows) };
        self.hands.one(plan.verb, row.target.what.clone()).await
    }
}

fn reason(plan: &ActionPlan) -> &str {
    assert!(plan.rows.is_empty(), "{:?}", plan.rows);
    &plan.refused[0].reason
}

const GOOD_JOB_ROWS: &str = "
    INSERT INTO good_job_processes (id, state, updated_at, lock_type) VALUES
        ('00000000-0000-0000-0000-0000000000a2', '{\"hostname\": \"web\", \"pid\": 2}', now() - interval '6 minutes', NULL);
    INSERT INTO good_jobs (job_class, queue_name, executions_count, scheduled_at, performed_at, locked_by_id, lock_type, serialized_params)
        SELECT name, 'q', 1, now(), now() - interval '7 minutes', ('00000000-0000-0000-0000-0000000000' || owner)::uuid, 1, '{}'
        FROM (VALUES ('Silent', 'a2'), ('Absent', 'a3')) AS v (name, owner);
    INSERT INTO good_jobs (job_class, queue_name, executions_count, scheduled_at, performed_at, locked_by_id, lock_type, serialized_params)
        VALUES ('Free', 'q', 1, now(), now(), '00000000-0000-0000-0000-0000000000a2', 0, '{}');";

#[tokio::test]
async fn a_good_job_job_is_released_once_and_only_as_it_was_seen() {
    let mut ground = Ground::of(&format!("{GOOD_JOB}{GOOD_JOB_ROWS}"), allowed()).await;
    let owner = "SELECT locked_by_id FROM good_jobs WHERE job_class = ";
    // No worker has it now.
    let plan = ground.job("Absent");
    assert!(plan.rows[0].cautions[0].words.contains("may still be working"), "{:?}", plan.rows[0].cautions);
    let (outcome, detail) = ground.act(&plan).await;
    assert_eq!(
        (outcome, detail.as_str()),
        (Outcome::Done, "its claim is taken away, and any process takes it at its next poll")
    );
    assert_eq!(ground.value(&format!("{owner} 'Absent'")).await, "NULL");
    assert_eq!(ground.act(&plan).await.0, Outcome::Changed, "it was done once");
    // Another run of it began since it was seen.
    let plan = ground.job("Silent");
    ground.run("UPDATE good_jobs SET performed_at = now() WHERE job_class = 'Silent'").await;
    assert_eq!(ground.act(&plan).await.0, Outcome::Changed);
    assert_ne!(ground.value(&format!("{owner} 'Silent'")).await, "NULL");
    // Its worker is back.
    ground
        .stage
        .poll_until("it to be read again", |view| {
            view.adapters.rows.iter().any(|row| {
                row.job.name.as_deref() == Some("Silent")
                    && row.judged.state.is_lost()
                    && row.job.started_at
                        > Some(view.snapshot.as_ref().unwrap().taken_at - chrono::TimeDelta::seconds(60))
            })
        })
        .await;
    let plan = ground.job("Silent");
    ground.run("UPDATE good_job_processes SET updated_at = now()").await;
    assert_eq!(ground.act(&plan).await.0, Outcome::Changed);
    // A job that is lost by its lock is recovered automatically.
    ground.run("UPDATE good_job_processes SET updated_at = now() - interval '1 hour'").await;
    assert!(
        reason(&ground.job("Free"))
            .starts_with("is lost according to lock only: its system recovers it; recovery: automatic")
    );
}

#[tokio::test]
async fn recovery_does_not_wait_for_a_held_lock() {
    let with_lock = |adapter: &Arc<Adapter>| {
        let mut adapter = Adapter::clone(adapter);
        for action in &mut adapter.actions {
            action.holds_key = true;
            action.proofs.push(Proof::Lock);
        }
        Arc::new(adapter)
    };
    let adapters = allowed().iter().map(with_lock).collect();
    let mut ground = Ground::of(&format!("{GOOD_JOB}{GOOD_JOB_ROWS}"), adapters).await;
    let plan = ground.job("Free");
    let holder = super::client(&ground.info).await;
    let key = "('x' || substr(md5('good_jobs-' || id::text), 1, 16))::bit(64)::bigint";
    holder
        .batch_execute(&format!("SELECT pg_advisory_lock({key}) FROM good_jobs WHERE job_class = 'Free'"))
        .await
        .unwrap();
    let (outcome, detail) = ground.act(&plan).await;
    assert_eq!(
        (outcome, detail.as_str()),
        (Outcome::Refused, "its advisory lock is held: a worker may be working on it")
    );
    holder.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    assert_eq!(ground.act(&plan).await.0, Outcome::Done);
    assert_eq!(ground.value("SELECT locked_by_id FROM good_jobs WHERE job_class = 'Free'").await, "NULL");
}

#[tokio::test]
async fn nothing_is_done_that_the_config_does_not_allow() {
    let ground = Ground::of(&format!("{GOOD_JOB}{GOOD_JOB_ROWS}"), all()).await;
    assert_eq!(
        reason(&ground.job("Absent")),
        "allow_actions = true in [adapters.good_job] of the config permits it; it is off"
    );
    let live = "INSERT INTO good_job_processes (id, state, updated_at, lock_type) VALUES
        ('00000000-0000-0000-0000-0000000000a3', '{}', now(), NULL)";
    let ground = Ground::of(&format!("{GOOD_JOB}{GOOD_JOB_ROWS}{live}"), allowed()).await;
    assert_eq!(reason(&ground.job("Absent")), "is running: only a job that lost its worker can be returned");
}

#[tokio::test]
async fn a_job_of_solid_queue_is_ready_again() {
    let rows = "
        INSERT INTO solid_queue_processes (id, kind, last_heartbeat_at, pid, hostname) VALUES (2, 'Worker', now() - interval '6 minutes', 12, 'web');
        INSERT INTO solid_queue_jobs (id, queue_name, class_name, priority) VALUES (2, 'q', 'Silent', 7), (4, 'q', 'Nobody', 0), (5, 'q', 'Again', 0);
        INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) SELECT job, process, now() - interval '1 minute' FROM (VALUES (2, 2), (4, NULL), (5, 99)) AS v (job, process);";
    let mut ground = Ground::of(&format!("{SOLID_QUEUE}{rows}"), allowed()).await;
    for (name, id) in [("Silent", 2), ("Nobody", 4)] {
        let plan = ground.job(name);
        assert_eq!(ground.act(&plan).await.0, Outcome::Done, "{name}");
        let ready = format!(
            "SELECT (SELECT string_agg(queue_name || ' ' || priority, ',') FROM solid_queue_ready_executions WHERE job_id = {id}) || ' ' || count(*) FROM solid_queue_claimed_executions WHERE job_id = {id}"
        );
        assert_eq!(ground.value(&ready).await, format!("q {} 0", if id == 2 { 7 } else { 0 }));
        assert_eq!(ground.act(&plan).await.0, Outcome::Changed, "{name} once");
    }
    // Taken by another worker since it was seen.
    let plan = ground.job("Again");
    ground.run("UPDATE solid_queue_claimed_executions SET process_id = 98 WHERE job_id = 5").await;
    assert_eq!(ground.act(&plan).await.0, Outcome::Changed);
    assert_eq!(ground.value("SELECT count(*) FROM solid_queue_claimed_executions").await, "1");
}

#[tokio::test]
async fn overdue_jobs_of_oban_and_river_are_returned_to_the_queue() {
    let rows = "
        INSERT INTO oban_jobs (id, state, queue, worker, attempt, max_attempts, attempted_at, attempted_by) VALUES
            (1, 'executing', 'q', 'Late', 1, 20, now() - interval '2 hours', '{node}'),
            (2, 'executing', 'q', 'Last', 20, 20, now() - interval '2 hours', '{node}');";
    let mut ground = Ground::of(&format!("{OBAN}{rows}"), allowed()).await;
    let plan = ground.job("Late");
    assert_eq!(ground.act(&plan).await.0, Outcome::Done);
    assert_eq!(ground.value("SELECT state FROM oban_jobs WHERE id = 1").await, "available");
    assert_eq!(ground.act(&ground.job("Last")).await.0, Outcome::Changed, "it has no attempt left");
    let rows = "
        INSERT INTO river_job (id, state, kind, queue, attempt, max_attempts, attempted_at, attempted_by, args, scheduled_at) VALUES
            (1, 'running', 'Late', 'q', 1, 25, now() - interval '2 hours', '{me}', '{}', now() - interval '2 hours');";
    let mut ground = Ground::of(&format!("{RIVER}{rows}"), allowed()).await;
    let plan = ground.job("Late");
    ground.run("UPDATE river_job SET attempt = 2").await;
    assert_eq!(ground.act(&plan).await.0, Outcome::Changed, "it is another attempt");
    ground.run("UPDATE river_job SET attempt = 1").await;
    assert_eq!(ground.act(&plan).await.0, Outcome::Done);
    assert_eq!(
        ground.value("SELECT state || ' ' || array_length(errors, 1) FROM river_job").await,
        "retryable 1"
    );
}

/// It lists its producers: a job of an unlisted one is released, but not before a producer could have been listed.
#[tokio::test]
async fn a_python_oban_job_is_released_without_waiting_for_its_rescuer() {
    let rows = "
        INSERT INTO oban_producers (uuid, node, queue, started_at, updated_at) VALUES ('00000000-0000-0000-0000-0000000000a1', 'a', 'q', now() - interval '1 hour', now()),
            ('00000000-0000-0000-0000-0000000000a2', 'b', 'q', now() - interval '1 hour', now() - interval '61 s');
        INSERT INTO oban_jobs (state, queue, worker, attempt, max_attempts, attempted_at, attempted_by)
            SELECT 'executing', 'q', name, 1, most, now() - interval '2 minutes', ARRAY['n', '00000000-0000-0000-0000-0000000000' || producer]
            FROM (VALUES ('Silent', 2, 'a2'), ('Absent', 2, 'a3'), ('Last', 1, 'a3'), ('Again', 2, 'a3'), ('Back', 2, 'a3'), ('Crash', 2, 'a3')) AS v (name, most, producer);";
    let mut ground = Ground::of(&format!("{OBAN_PYTHON}{rows}"), allowed()).await;
    let state = |name: &str| format!("SELECT state FROM oban_jobs WHERE worker = '{name}'");
    for name in ["Silent", "Absent"] {
        let plan = ground.job(name);
        assert!(
            plan.rows[0].cautions[0]
                .words
                .ends_with("its late finish is not accepted, and the job runs again"),
            "{:?}",
            plan.rows[0].cautions
        );
        assert_eq!(ground.act(&plan).await.0, Outcome::Done, "{name}");
        assert_eq!(ground.value(&state(name)).await, "available");
        assert_eq!(ground.act(&plan).await.0, Outcome::Changed, "{name} once");
    }
    let [last, again, back, crash] = ["Last", "Again", "Back", "Crash"].map(|name| ground.job(name));
    assert_eq!(ground.act(&last).await.0, Outcome::Changed, "it has no attempt left");
    ground.run("UPDATE oban_jobs SET attempted_at = now() WHERE worker = 'Again'").await;
    assert_eq!(ground.act(&again).await.0, Outcome::Changed, "it is another run");
    ground
        .run("INSERT INTO oban_producers (uuid, node, queue) VALUES ('00000000-0000-0000-0000-0000000000a3', 'c', 'q')")
        .await;
    assert_eq!(ground.act(&back).await.0, Outcome::Changed, "its producer is back");
    // The server has crashed: the list is empty, and then contains only the first producer.
    ground.run("TRUNCATE oban_producers").await;
    assert_eq!(ground.act(&crash).await.0, Outcome::Changed, "no producer is listed");
    ground
        .run("INSERT INTO oban_producers (uuid, node, queue) VALUES ('00000000-0000-0000-0000-0000000000a1', 'a', 'q')")
        .await;
    assert_eq!(ground.act(&crash).await.0, Outcome::Changed, "no producer has been listed for long");
    ground.run("UPDATE oban_producers SET started_at = started_at - interval '61 s'").await;
    assert_eq!(ground.act(&crash).await.0, Outcome::Done);
}

#[tokio::test]
async fn a_lease_is_ended_only_for_the_holder_it_was_seen_with() {
    let rows = "
        INSERT INTO shedlock VALUES ('reports', now() + interval '1 hour', now(), 'app-1'), ('mails', now() - interval '1 hour', now(), 'app-1');
        INSERT INTO databasechangeloglock VALUES (1, true, now() - interval '3 hours', 'pod-7 (10.0.0.7)');";
    let mut ground = Ground::of(&format!("{LEASES}{rows}"), allowed()).await;
    assert_eq!(reason(&ground.lease("mails")), "has ended: the next request gets it");
    let plan = ground.lease("reports");
    ground.run("UPDATE shedlock SET locked_by = 'app-2' WHERE name = 'reports'").await;
    assert_eq!(ground.act(&plan).await.0, Outcome::Changed);
    ground.run("UPDATE shedlock SET locked_by = 'app-1' WHERE name = 'reports'").await;
    assert_eq!(ground.act(&plan).await, (Outcome::Done, "the next request gets it".to_owned()));
    assert_eq!(ground.value("SELECT lock_until <= now() FROM shedlock WHERE name = 'reports'").await, "true");
    let plan = ground.lease("changelog 1");
    assert_eq!(ground.act(&plan).await.0, Outcome::Done);
    assert_eq!(
        ground.value("SELECT locked || ' ' || (lockedby IS NULL) FROM databasechangeloglock").await,
        "false true"
    );
}

/// A role with the right to create triggers on a table of a superuser has its function run by every role that writes there.
#[tokio::test]
async fn nothing_of_a_stranger_runs_when_it_is_written() {
    let name = format!("mallory_{}", std::process::id());
    let trap = format!(
        "CREATE ROLE {name}; CREATE SCHEMA evil AUTHORIZATION {name}; CREATE TABLE evil.hits (who text); GRANT INSERT ON evil.hits TO PUBLIC; GRANT USAGE ON SCHEMA evil TO PUBLIC;
         GRANT TRIGGER ON shedlock TO {name};
         SET ROLE {name};
         CREATE FUNCTION evil.hit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO evil.hits SELECT current_user; RETURN NEW; END';
         CREATE TRIGGER t BEFORE UPDATE ON shedlock FOR EACH ROW EXECUTE FUNCTION evil.hit();
         RESET ROLE;
         INSERT INTO shedlock VALUES ('reports', now() + interval '1 hour', now(), 'app-1');"
    );
    let mut ground = Ground::of(&format!("{LEASES}{trap}"), allowed()).await;
    let plan = ground.lease("reports");
    let (outcome, detail) = ground.act(&plan).await;
    assert_eq!(outcome, Outcome::Refused, "{detail}");
    assert!(detail.contains(&name), "{detail}");
    assert_eq!(ground.value("SELECT count(*) FROM evil.hits").await, "0");
    // The trap works.
    ground.run("UPDATE shedlock SET locked_by = 'app-1'").await;
    assert_eq!(ground.value("SELECT count(*) FROM evil.hits").await, "1");
    // And a table other than the one that was seen is not written.
    let TargetKind::Adapter(mut target) = plan.rows[0].target.what.clone() else { panic!("{:?}", plan.rows) };
    target.oid += 1;
    let (outcome, detail) = ground.hands.one(Verb::Unlock, TargetKind::Adapter(target)).await;
    assert_eq!((outcome, detail.as_str()), (Outcome::Refused, "its tables no longer exist"));
    ground.run(&format!("DROP OWNED BY {name} CASCADE; DROP ROLE {name}")).await;
}

/// A foreign key of another role changes rows of its table when rows are deleted, and its triggers run as the role that deletes.
#[tokio::test]
async fn a_foreign_key_of_a_stranger_runs_nothing() {
    let rows = "
        INSERT INTO solid_queue_jobs (id, queue_name, class_name) VALUES (5, 'q', 'Lost');
        INSERT INTO solid_queue_claimed_executions (id, job_id, process_id, created_at) VALUES (7, 5, 99, now() - interval '1 minute');";
    let name = format!("mallory_keys_{}", std::process::id());
    for (action, owner) in [("CASCADE", Some(&name)), ("NO ACTION", Some(&name)), ("CASCADE", None)] {
        let trap = format!(
            "CREATE ROLE {name}; CREATE SCHEMA evil AUTHORIZATION {name}; CREATE TABLE evil.hits (who text); GRANT INSERT ON evil.hits TO PUBLIC; GRANT USAGE, CREATE ON SCHEMA evil TO PUBLIC;
             GRANT SELECT, REFERENCES ON solid_queue_claimed_executions TO {name};
             SET ROLE {};
             CREATE TABLE evil.t (c bigint REFERENCES public.solid_queue_claimed_executions(id) ON DELETE {action});
             GRANT TRIGGER ON evil.t TO {name};
             SET ROLE {name};
             CREATE FUNCTION evil.hit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO evil.hits SELECT current_user; RETURN NULL; END';
             CREATE TRIGGER t AFTER DELETE ON evil.t FOR EACH ROW EXECUTE FUNCTION evil.hit();
             RESET ROLE;
             GRANT INSERT ON evil.t TO postgres;",
            owner.map_or("postgres", |name| name.as_str())
        );
        let mut ground = Ground::of(&format!("{SOLID_QUEUE}{rows}{trap}"), allowed()).await;
        if action == "CASCADE" {
            ground.run("INSERT INTO evil.t VALUES (7)").await;
        }
        let plan = ground.job("Lost");
        let (outcome, detail) = ground.act(&plan).await;
        assert_eq!(outcome, Outcome::Refused, "{action} {owner:?}: {detail}");
        let expected =
            if owner.is_some() { name.as_str() } else { "a foreign key of evil.t changes its rows" };
        assert!(detail.contains(expected), "{detail}");
        assert_eq!(ground.value("SELECT count(*) FROM evil.hits").await, "0");
        // The trap works.
        ground.run("DELETE FROM solid_queue_claimed_executions").await;
        let hits = if action == "CASCADE" { "1" } else { "0" };
        assert_eq!(ground.value("SELECT count(*) FROM evil.hits").await, hits);
        ground
            .run(&format!("DROP SCHEMA evil CASCADE; DROP OWNED BY {name} CASCADE; DROP ROLE {name}"))
            .await;
    }
}

/// A connection that a pooler lends by the transaction has the search path of the database, where its owner may have put an operator.
#[tokio::test]
async fn an_operator_on_the_path_of_the_database_is_not_called() {
    let name = format!("mallory_path_{}", std::process::id());
    let trap = format!(
        "CREATE ROLE {name}; CREATE SCHEMA evil AUTHORIZATION {name}; GRANT USAGE ON SCHEMA evil TO PUBLIC;
         CREATE TABLE evil.hits (who text); GRANT INSERT ON evil.hits TO PUBLIC;
         SET ROLE {name};
         CREATE FUNCTION evil.eq(oid, oid) RETURNS bool LANGUAGE plpgsql AS
             'BEGIN INSERT INTO evil.hits SELECT current_user; RETURN $1 OPERATOR(pg_catalog.=) $2; END';
         CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.eq);
         RESET ROLE;
         INSERT INTO shedlock VALUES ('reports', now() + interval '1 hour', now(), 'app-1');"
    );
    let mut ground = Ground::of(&format!("{LEASES}{trap}"), allowed()).await;
    let path = format!("ALTER DATABASE {} SET search_path = evil, pg_catalog", ground.info.dbname());
    ground.run(&path).await;
    // It has the path from now on.
    ground.hands = Hands::of(&ground.info).await;
    let plan = ground.lease("reports");
    let (outcome, detail) = ground.act(&plan).await;
    assert_eq!(outcome, Outcome::Done, "{detail}");
    assert_eq!(ground.value("SELECT count(*) FROM evil.hits").await, "0");
    // The trap works.
    ground.run("SELECT FROM pg_class WHERE oid = 1259").await;
    assert_ne!(ground.value("SELECT count(*) FROM evil.hits").await, "0");
}
