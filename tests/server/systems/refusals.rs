//! Requests that the schema's functions refuse, as they are counted and shown.

use serde_json::json;

use super::stage::Stage;
use super::{own, support};

const ROWS: &str = "INSERT INTO locktop.accounts (username, balance) VALUES ('a', 9), ('b', 0);
    INSERT INTO locktop.scheduled_tasks (task_name, task_type, schedule_cron, next_run_at) VALUES ('t', 'x', '@daily', now());
    SELECT locktop.lease_acquire(1, 'first', '1 hour');
    SELECT locktop.check_rate_limit('k', 1, 3600)";

/// Three requests over a limit, two transfers of an old version, one lease that another owner has.
const REFUSED: &str = "SELECT locktop.check_rate_limit('k', 1, 3600), locktop.check_rate_limit('k', 1, 3600);
    SELECT allowed FROM locktop.take_rate_limit('k', 1, 3600);
    SELECT locktop.transfer_at_versions(1, 7, 2, 0, 1), locktop.transfer_at_versions(1, 7, 2, 0, 1);
    SELECT locktop.lease_acquire(1, 'second', '1 hour')";

#[tokio::test]
async fn each_refusal_is_counted_once_and_shown_in_a_quiet_server() {
    for version in support::versions() {
        let mut stage = Stage::on(support::server_of(version).await, &format!("{};{ROWS}", own())).await;
        let (client, other) = (stage.client().await, stage.client().await);
        stage.poll().await;
        let all = |counts: [i64; 4]| json!([{ "table": "locktop.refusals", "rate_limit": counts[0], "transfer": counts[1], "lease": counts[2], "task": counts[3] }]);
        assert_eq!(stage.json()["refusals"], all([0; 4]), "PostgreSQL {version}");
        client.batch_execute(REFUSED).await.unwrap();
        let acquire = "SELECT locktop.try_acquire_task_lock(1, 'w')";
        assert!(client.query_one(acquire, &[]).await.unwrap().get::<_, bool>(0), "PostgreSQL {version}");
        assert!(!other.query_one(acquire, &[]).await.unwrap().get::<_, bool>(0), "PostgreSQL {version}");
        // Granted requests are not counted, and rolled back ones are.
        client
            .batch_execute(
                "SELECT locktop.check_rate_limit('other', 1, 3600); SELECT locktop.transfer_optimistic(1, 2, 1);
                 BEGIN; SELECT locktop.lease_acquire(1, 'third', '1 hour'); ROLLBACK;
                 BEGIN READ ONLY; SELECT allowed FROM locktop.take_rate_limit('k', 1, 3600); COMMIT",
            )
            .await
            .unwrap();
        stage.poll().await;
        assert_eq!(stage.json()["refusals"], all([3, 2, 2, 1]), "PostgreSQL {version}");
        assert_eq!(stage.json()["sections"]["refusals"]["known"], true);
        let line = locktop::model::refusals::line(&stage.view().series.refusals).unwrap();
        assert_eq!(line, "refused in 1m: rate limit 3, transfer 2, lease 2, task 1", "PostgreSQL {version}");
    }
}

#[tokio::test]
async fn a_role_without_the_right_is_refused_all_the_same_and_reads_nothing() {
    let roles = "DROP ROLE IF EXISTS refused_app, refused_monitor, refused_stranger;
        CREATE ROLE refused_app LOGIN; CREATE ROLE refused_monitor LOGIN; CREATE ROLE refused_stranger LOGIN;
        GRANT USAGE ON SCHEMA locktop TO refused_app, refused_monitor, refused_stranger";
    // As an application had it before the counters existed.
    let mut stage = Stage::new("").await;
    let mut client = stage.client().await;
    let schema = locktop::schema::SchemaName::default();
    locktop::schema::install_up_to(&mut client, &schema, 7).await.unwrap();
    client
        .batch_execute(&format!(
            "{ROWS}; {roles}; GRANT SELECT, INSERT, UPDATE ON locktop.rate_limit TO refused_app;
             GRANT SELECT ON locktop.rate_limit, locktop.distlock TO refused_monitor;
             GRANT SELECT ON locktop.rate_limit TO refused_stranger;
             ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"
        ))
        .await
        .unwrap();
    locktop::schema::install(&mut client, &schema).await.unwrap();
    client
        .batch_execute(
            "REVOKE ALL ON SEQUENCE locktop.refusals_rate_limit_seq FROM refused_stranger;
             SET ROLE refused_app; SELECT locktop.check_rate_limit('k', 1, 3600);
             SET ROLE refused_stranger; SELECT locktop.check_rate_limit('k', 1, 3600); RESET ROLE",
        )
        .await
        .unwrap();
    for (role, expected) in [
        ("refused_monitor", json!({ "rate_limit": 1, "transfer": null, "lease": 0, "task": null })),
        ("refused_stranger", json!({ "rate_limit": null, "transfer": null, "lease": null, "task": null })),
    ] {
        stage.as_role(role).await;
        stage.poll().await;
        let mut expected = expected;
        expected["table"] = json!("locktop.refusals");
        assert_eq!(stage.json()["refusals"], json!([expected]), "{role}");
    }
    stage.close();
    client
        .batch_execute(
            "DROP SCHEMA locktop CASCADE; DROP ROLE refused_app; DROP ROLE refused_monitor; DROP ROLE refused_stranger",
        )
        .await
        .unwrap();
}
