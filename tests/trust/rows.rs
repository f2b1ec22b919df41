//! Tables of a harmless role that nobody has named: the small ones are shown as if it were trusted, the large ones say what to type.

use serde_json::Value;

use crate::forged::installed;
use crate::ground::{Ground, one_version};
use crate::looks::snapshot;
use crate::support::versions;

/// Everything that comes from users' tables, without what is counted from the moment of the look.
fn told(json: &Value) -> Vec<(&'static str, Value)> {
    let keys = ["tasks", "executions", "leases", "queue", "sections"];
    keys.into_iter()
        .map(|key| {
            let mut value = json[key].clone();
            without_ages(&mut value);
            (key, value)
        })
        .collect()
}

fn without_ages(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, _| !matches!(key.as_str(), "taken_at"));
            object.values_mut().for_each(without_ages);
        }
        Value::Array(array) => array.iter_mut().for_each(without_ages),
        _ => {}
    }
}

async fn same(ground: &Ground) -> Value {
    let plain = snapshot(ground, "monitor", &[]).await;
    let trusted = snapshot(ground, "monitor", &["--trust-owner", "app"]).await;
    for ((name, plain), (_, trusted)) in told(&plain).into_iter().zip(told(&trusted)) {
        assert_eq!(plain, trusted, "{name}");
    }
    plain
}

#[tokio::test]
async fn small_tables_of_a_role_that_is_not_named_are_shown_as_they_are() {
    for version in versions() {
        let ground = Ground::new(version).await;
        ground.tables("app").await;
        let json = same(&ground).await;
        let count = |key: &str| json[key].as_array().map(Vec::len);
        assert_eq!(
            (count("tasks"), count("executions"), count("leases")),
            (Some(3), Some(3), Some(2)),
            "{json}"
        );
        let queue = &json["queue"];
        let counts = ["pending", "processing", "failed"].map(|key| queue[key].as_u64());
        assert_eq!(counts, [Some(1), Some(1), Some(1)], "{queue}");
        assert_eq!(json["executions"][0]["state"], "unknown", "{json}");
    }
}

const OWN: &str = include_str!("own.sql");

#[tokio::test]
async fn our_own_tables_of_a_role_that_is_not_named_are_shown_as_they_are() {
    for version in versions() {
        let ground = installed(version, "app").await;
        ground.run("app", OWN).await;
        let json = same(&ground).await;
        assert_eq!(json["tasks"].as_array().map(Vec::len), Some(300), "{json}");
        let states: std::collections::BTreeSet<&str> =
            json["tasks"].as_array().unwrap().iter().filter_map(|task| task["state"].as_str()).collect();
        assert!(states.len() >= 4, "{states:?}");
        assert!(json["executions"].as_array().unwrap().len() > 100, "{json}");
    }
}

/// Eight megabytes of a stranger's are enough.
#[tokio::test]
async fn a_large_table_is_not_read_and_says_whose_it_is() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        ground.tables("app").await;
        let fill = "INSERT INTO task_execution_log (task_id, worker_id, status, started_at, completed_at, error_message)
                        SELECT 1, 'w', 'completed', now(), now(), repeat('x', 500) FROM generate_series(1, 20000);
                    INSERT INTO task_queue (task_name, payload, status) SELECT 'x', to_jsonb(repeat('x', 500)), 'completed'
                        FROM generate_series(1, 20000)";
        ground.run("app", fill).await;
        let json = snapshot(&ground, "monitor", &[]).await;
        let findings: Vec<&str> = json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|finding| finding["summary"].as_str())
            .collect();
        for table in ["task_execution_log", "task_queue"] {
            let says = |text: &str| text.contains(table) && text.contains("app") && text.contains("trust");
            let in_sections = says(&json["sections"].to_string());
            assert!(
                in_sections || findings.iter().any(|text| says(text)),
                "{table}: {} {findings:?}",
                json["sections"]
            );
        }
        assert_eq!(json["executions"].as_array().map(Vec::len), Some(0), "none that may be old");
        // The others are as before.
        assert_eq!(json["tasks"].as_array().map(Vec::len), Some(3));
        assert_eq!(json["leases"].as_array().map(Vec::len), Some(2));
        let json = snapshot(&ground, "monitor", &["--trust-owner", "app"]).await;
        assert!(!json["executions"].as_array().unwrap().is_empty());
        assert_eq!(json["queue"]["failed"].as_u64(), Some(1));
    }
}
