//! Times without a zone that were written as those of another zone than UTC, as Rails does with `default_timezone = :local`.

use std::sync::Arc;

use locktop::config::adapter::built_in;
use locktop::model::adapter::Adapter;
use locktop::model::plan::{self, Outcome, PlanContext, TargetKind, Verb};
use locktop::model::row_id::RowId;

use super::SOLID_QUEUE;
use super::stage::Stage;
use super::states::{expected, job_states};
use crate::action::stage::Hands;

const ZONE: &str = "America/New_York";
/// A live worker has a job, and another job is scheduled.
const LIVE: &str = "
    SET TimeZone = 'America/New_York';
    INSERT INTO solid_queue_processes (id, kind, last_heartbeat_at, pid, hostname) VALUES (1, 'Worker', localtimestamp - interval '20 s', 11, 'web');
    INSERT INTO solid_queue_jobs (id, queue_name, class_name) VALUES (1, 'q', 'Runs'), (2, 'q', 'Later'), (3, 'q', 'Silent');
    INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) VALUES (1, 1, localtimestamp - interval '1 minute');
    INSERT INTO solid_queue_scheduled_executions (job_id, queue_name, scheduled_at) VALUES (2, 'q', localtimestamp + interval '1 hour');";
/// A silent worker.
const SILENT: &str = "
    INSERT INTO solid_queue_processes (id, kind, last_heartbeat_at, pid, hostname) VALUES (2, 'Worker', localtimestamp - interval '6 minutes', 12, 'web');
    INSERT INTO solid_queue_claimed_executions (job_id, process_id, created_at) VALUES (3, 2, localtimestamp - interval '10 minutes');";

async fn polled(rows: &str, zone: Option<&str>) -> Stage {
    let mut stage = Stage::on(super::server().await, &format!("{SOLID_QUEUE}{rows}")).await;
    let of = |adapter| Adapter { allows_actions: true, time_zone: zone.map(Into::into), ..adapter };
    stage.adapters(built_in().unwrap().into_iter().map(of).map(Arc::new).collect()).await;
    stage.poll().await;
    stage.poll().await;
    stage
}

fn hints(stage: &Stage) -> Vec<String> {
    let findings = stage.view().findings.iter().filter(|finding| finding.check == "adapter");
    findings.map(|finding| format!("{}; {}", finding.summary, finding.about)).collect()
}

/// The plan of `R` for the only job that is lost.
fn recovery(stage: &Stage) -> plan::ActionPlan {
    let lost = stage.view().adapters.rows.iter().find(|row| row.judged.state.is_lost()).unwrap();
    plan::rows(
        &PlanContext { view: stage.view(), rights: None, own_pids: &[], terminated: &[] },
        Verb::Recover,
        &[RowId::Job(lost.id)],
    )
}

#[tokio::test]
async fn a_worker_in_another_time_zone_seems_silent_until_it_is_configured() {
    let stage = polled(LIVE, None).await;
    let runs = job_states(stage.view()).into_iter().find(|row| row.0 == "Runs").unwrap();
    assert_eq!((runs.1, runs.2), ("lost", "heartbeat"));
    let hints_of = hints(&stage);
    let [hint] = hints_of.as_slice() else { panic!("{hints_of:?}") };
    let expected_hint =
        "Solid Queue: its workers may write times in another time zone; the last heartbeat of each is ";
    assert!(hint.starts_with(expected_hint), "{hint}");
    assert!(hint.ends_with("time_zone in [adapters.solid_queue] of the config to their zone"), "{hint}");
    let words = recovery(&stage).rows[0].cautions[0].words.clone();
    assert!(words.starts_with("its last heartbeat is off by a multiple of 30 minutes"), "{words}");
    // With the zone configured it is alive, and none of its jobs is released.
    let stage = polled(LIVE, Some(ZONE)).await;
    let rows = [("Runs", "running", "heartbeat", ""), ("Later", "scheduled", "none", "")];
    assert_eq!(job_states(stage.view()), expected(&rows));
    assert_eq!(hints(&stage), [""; 0]);
}

#[tokio::test]
async fn actions_compare_and_write_times_in_the_configured_zone() {
    let stage = polled(&format!("{LIVE}{SILENT}"), Some(ZONE)).await;
    let plan = recovery(&stage);
    let [row] = plan.rows.as_slice() else { panic!("{:?}", plan.refused) };
    let mut hands = Hands::of(stage.info()).await;
    let client = stage.client().await;
    let ready = "SELECT count(*), coalesce(bool_and(abs(extract(epoch FROM created_at - (now() AT TIME ZONE 'America/New_York'))) < 300), true)
        FROM solid_queue_ready_executions WHERE job_id = 3";
    // In its own time zone it is no longer silent.
    let beat = "UPDATE solid_queue_processes SET last_heartbeat_at = now() AT TIME ZONE 'America/New_York' - interval '4 minutes' WHERE id = 2";
    client.batch_execute(beat).await.unwrap();
    assert_eq!(hands.one(Verb::Recover, row.target.what.clone()).await.0, Outcome::Changed);
    client
        .batch_execute(
            "UPDATE solid_queue_processes SET last_heartbeat_at = last_heartbeat_at - interval '2 minutes'",
        )
        .await
        .unwrap();
    let TargetKind::Adapter(mut other) = row.target.what.clone() else { panic!("{row:?}") };
    let installation = Arc::make_mut(&mut other.installation);
    Arc::make_mut(&mut installation.adapter).time_zone = None;
    let (outcome, _) = hands.one(Verb::Recover, TargetKind::Adapter(other)).await;
    assert_eq!(outcome, Outcome::Changed, "its start was read in another zone");
    let (outcome, detail) = hands.one(Verb::Recover, row.target.what.clone()).await;
    assert_eq!(outcome, Outcome::Done, "{detail}");
    let row = client.query_one(ready, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (1, true));
}

#[tokio::test]
async fn an_unknown_time_zone_is_reported() {
    let stage = polled(LIVE, Some("America/New_Yorck")).await;
    let hints = hints(&stage);
    assert!(hints.iter().any(|hint| hint.contains("New_Yorck")), "{hints:?}");
    assert!(stage.view().adapters.rows.is_empty());
}
