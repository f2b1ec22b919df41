use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::model::lock::LockMode;
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Section;
use crate::output::sample;

fn written(view: &View) -> Value {
    let names = LockNames::new([(crate::model::lock_key::LockKey::Bigint(72_707_369), "billing".into())]);
    let view = View { lock_names: std::sync::Arc::new(names), ..view.clone() };
    serde_json::from_str(&to_string(&view).unwrap().unwrap()).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn assert_keys(value: &Value, contract: &str) {
    let present = keys(value);
    for key in contract.split_whitespace() {
        assert!(present.contains(&key), "{key} is missing in {value}");
    }
}

#[test]
fn every_key_of_the_contract_exists() {
    let json = written(&sample::view());
    assert_keys(
        &json,
        "format taken_at server backends prepared locks queues edges edges_omitted roots cycles tasks executions \
         leases queue findings sections",
    );
    assert_keys(
        &json["server"],
        "host port version_num version in_recovery database connections max_connections deadlocks pooler tls",
    );
    assert_keys(
        &json["backends"][0],
        "pid backend_start leader_pid database user application client backend_type state wait_event_type wait_event \
         xact_start query_start state_change backend_xid backend_xmin query_id query why",
    );
    assert_keys(&json["prepared"][0], "gid virtualtransaction database owner prepared");
    assert_keys(
        &json["locks"][0],
        "locktype database relation relation_name page tuple virtualxid transactionid classid objid objsubid key \
         name mode granted pid gid virtualtransaction wait_start",
    );
    assert_keys(&json["queues"][0], "lock holders waiters");
    assert_keys(&json["edges"][0], "waiter blocker gid kind lock inferred");
    assert_keys(
        &json["roots"][0],
        "pid gid blocked frees in_turn still_blocked may_stay_blocked others_must_end longest_wait",
    );
    assert_keys(&json["queue"], "pending processing completed failed oldest_pending_at");
    assert_keys(&json["findings"][0], "check severity summary subject");
    for section in ["server", "backends", "locks", "prepared"] {
        assert_keys(&json["sections"][section], "taken_at error");
    }
}

#[test]
fn values_are_those_of_the_contract() {
    let json = written(&sample::view());
    assert_eq!(json["format"], 1);
    assert_eq!(json["taken_at"], "2023-11-14T22:15:00.000000+00:00");
    assert_eq!(json["backends"][0]["state"], "idle in transaction");
    assert_eq!(json["backends"][0]["backend_xmin"], Value::Null);
    assert_eq!(json["backends"][0]["query_id"], i64::MIN);
    assert_eq!(json["prepared"][0]["virtualtransaction"], "-1/757");
    assert_eq!(json["locks"].as_array().unwrap().len(), 5, "a lock without waiters is left out");
    let lock = &json["locks"][0];
    assert_eq!(lock["key"], json!({"kind": "bigint", "value": 72_707_369, "text": "72707369"}));
    assert_eq!(
        (&lock["name"], &lock["mode"], &lock["granted"]),
        (&json!("billing"), &json!("ExclusiveLock"), &json!(true))
    );
    let held = json["locks"].as_array().unwrap().iter().find(|lock| lock["gid"] == "order 7").unwrap();
    assert_eq!((&held["pid"], &held["relation_name"]), (&Value::Null, &json!("accounts")));
    assert_eq!(json["findings"][0]["severity"], "critical");
    assert_eq!(
        json["findings"][0]["subject"],
        json!({"kind": "prepared", "gid": "order 7", "virtualtransaction": "-1/757"})
    );
    assert_eq!(json["leases"], json!([]));
    assert_eq!(json["queue"]["oldest_pending_at"], Value::Null);
}

fn assert_exact(value: &Value, place: &str) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| assert_exact(value, place)),
        Value::Object(fields) => {
            for (name, value) in fields {
                assert_exact(value, &format!("{place}.{name}"));
                let Some(number) = value.as_i64().filter(|number| number.unsigned_abs() > 1 << 53) else {
                    continue;
                };
                let text_key = if name == "value" { "text".to_owned() } else { format!("{name}_text") };
                assert_eq!(fields.get(&text_key), Some(&json!(number.to_string())), "{place}.{name}");
            }
        }
        _ => {}
    }
}

/// jq and JavaScript read numbers as doubles.
#[test]
fn a_number_too_large_for_a_double_is_also_written_as_text() {
    let mut builder = crate::sample::systems::queue(0.0);
    builder.backends.iter_mut().for_each(|backend| backend.query_id = Some(i64::MIN + 1));
    builder.leases.iter_mut().for_each(|lease| lease.token = Some((1 << 53) + 1));
    builder.items.iter_mut().for_each(|item| item.id += 1 << 54);
    builder.lock(4312, crate::sample::advisory(i64::MAX), LockMode::Exclusive, None);
    let json = written(&builder.view());
    assert_exact(&json, "");
    assert_exact(&written(&crate::sample::jobs(0.0).view()), "");
    let text = json.to_string();
    for number in ["9223372036854775807", "-9223372036854775807", "9007199254740993"] {
        assert!(text.contains(&format!("\"{number}\"")), "{number}");
    }
}

#[test]
fn queues_edges_and_roots_point_at_the_locks() {
    let json = written(&sample::view());
    let queues = json["queues"].as_array().unwrap();
    let advisory = queues.iter().find(|queue| queue["holders"] == json!([1])).unwrap();
    assert_eq!(advisory["waiters"], json!([2, 3]));
    assert_eq!(json["locks"][index(&advisory["lock"])]["locktype"], "advisory");
    let edges = json["edges"].as_array().unwrap();
    let edge = |waiter: i32, blocker: i32| {
        edges.iter().find(|edge| edge["waiter"] == waiter && edge["blocker"] == blocker).unwrap()
    };
    assert_eq!((&edge(2, 1)["kind"], &edge(2, 1)["inferred"]), (&json!("holder"), &json!(false)));
    assert_eq!((&edge(3, 2)["kind"], &edge(3, 2)["inferred"]), (&json!("queue"), &json!(true)));
    assert_eq!(edge(4, 0)["gid"], "order 7");
    for edge in edges {
        let row = &json["locks"][index(&edge["lock"])];
        assert_eq!((&row["pid"], &row["granted"]), (&edge["waiter"], &json!(false)));
    }
    let roots = json["roots"].as_array().unwrap();
    assert_eq!(
        roots[0],
        json!({
            "pid": 1, "gid": null, "blocked": 2, "frees": 1, "in_turn": 1, "still_blocked": 0, "may_stay_blocked": 0,
            "others_must_end": 0, "longest_wait": 60.0, "normal_wait": null
        })
    );
    assert_eq!((&roots[1]["pid"], &roots[1]["gid"]), (&json!(0), &json!("order 7")));
    assert_eq!(json["edges_omitted"], 0);
    let why = |pid: i32| {
        let backends = json["backends"].as_array().unwrap();
        backends.iter().find(|backend| backend["pid"] == pid).unwrap()["why"].as_array().unwrap().len()
    };
    assert!(why(1) == 0 && why(2) > 1, "a waiting session has reasons");
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn an_unread_section_is_empty_and_shows_the_error() {
    let mut view = sample::view();
    let mut snapshot = Snapshot::clone(view.snapshot.as_deref().unwrap());
    snapshot.locks = snapshot.locks.stale("canceling statement due to statement timeout".into());
    snapshot.server = Section::default().stale("no".into());
    view.snapshot = Some(Arc::new(snapshot));
    let json = written(&view);
    for empty in ["locks", "queues", "edges", "roots", "cycles"] {
        assert_eq!(json[empty], json!([]), "{empty}");
    }
    assert_eq!(json["server"], Value::Null);
    assert_eq!(json["sections"]["locks"]["error"], "canceling statement due to statement timeout");
    assert_eq!(json["sections"]["locks"]["taken_at"], "2023-11-14T22:15:00.000000+00:00");
    assert_eq!(json["backends"].as_array().unwrap().len(), 4);
}

#[test]
fn without_a_snapshot_nothing_is_written() {
    let view = View { snapshot: None, ..sample::view() };
    assert!(to_string(&view).is_none());
}

#[test]
fn tasks_and_executions_match_the_contract() {
    let json = written(&crate::sample::jobs(0.0).view());
    assert_keys(&json["tasks"][0], "id name type enabled last_run_at next_run_at state");
    assert_keys(
        &json["executions"][0],
        "id task_id task_name worker_id status started_at lock_key holder_pid state",
    );
    let states = |section: &str| {
        let rows = json[section].as_array().unwrap();
        rows.iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        states("tasks"),
        ["running", "running", "overdue", "overdue", "idle", "running", "idle", "disabled", "due"]
    );
    assert_eq!(states("executions"), ["failed", "orphan", "running", "slow", "completed"]);
    let slow = &json["executions"][3];
    assert_eq!((&slow["holder_pid"], &slow["task_name"]), (&json!(6103), &json!("数据清理任务")));
    assert_eq!(
        slow["lock_key"],
        json!({"kind": "bigint", "value": (0x4C54_i64 << 48) + 3, "text": "5500021044926218243"})
    );
    assert_eq!(json["sections"]["tasks"]["error"], Value::Null);
    assert!(json["sections"]["executions"]["taken_at"].is_string());
    let leaked = json["findings"].as_array().unwrap().iter().find(|one| one["check"] == "leaked_lock");
    assert_eq!(leaked.unwrap()["subject"], json!({"kind": "task", "table": 3001, "id": 6}));
    let name = json["locks"].as_array().unwrap().iter().find(|lock| lock["pid"] == 6103);
    assert_eq!(name.unwrap()["name"], "数据清理任务", "the lock has the name of its task");
}

#[test]
fn leases_and_the_queue_match_the_contract() {
    let json = written(&crate::sample::systems::queue(0.0).view());
    assert_keys(&json["leases"][0], "source id owner acquired_at expires_at expired token");
    let expired = json["leases"].as_array().unwrap().iter().find(|lease| lease["id"] == "7").unwrap();
    assert_eq!((&expired["expired"], &expired["token"]), (&json!(true), &json!(12)));
    assert_eq!(expired["expires_at"], "2026-11-20T14:01:50.000000+00:00");
    let queue = &json["queue"];
    let numbers = ["pending", "processing", "completed", "failed"].map(|key| queue[key].as_u64());
    assert_eq!(numbers, [Some(1204), Some(4), Some(10_000), Some(3)]);
    assert_eq!((&queue["more"], &queue["completed_per_minute"]), (&json!(["completed"]), &json!(118)));
    assert_eq!(queue["oldest_pending_at"], "2026-11-20T13:37:21.000000+00:00");
    assert_eq!(json["queue_items"][0]["state"], "lost");
    assert_eq!(json["rate_limits"][0]["state"], "full");
    assert_eq!(json["id_generators"][2]["ahead"], 300.0);
    for section in ["leases", "queue", "queue_items", "rate_limits", "id_generators"] {
        assert_eq!(json["sections"][section]["error"], Value::Null, "{section}");
    }
    let subject = |check: &str| {
        let findings = json["findings"].as_array().unwrap().iter();
        findings.filter(|one| one["check"] == check).map(|one| one["subject"].clone()).next().unwrap()
    };
    let lease = json!({"kind": "lease", "source": "locktop.distlock", "id": "8"});
    assert_eq!(subject("expired_lease"), lease);
    assert_eq!(
        subject("lost_item"),
        json!({"kind": "queue_item", "table": 3011, "id": 41_207, "id_text": "41207"})
    );
    assert_eq!(subject("queue_pending"), json!({"kind": "queue"}));
    let limit = json!({"kind": "rate_limit", "table": "locktop.rate_limit", "key": "user:123:api"});
    assert_eq!(subject("rate_limit"), limit);
    assert_eq!(subject("id_ahead"), json!({"kind": "id_generator", "table": 3013, "worker_id": 3}));
}

#[test]
fn unread_tables_are_empty_and_show_the_error() {
    let mut view = crate::sample::jobs(0.0).view();
    let mut snapshot = Snapshot::clone(view.snapshot.as_deref().unwrap());
    for set in Arc::make_mut(&mut snapshot.task_sets) {
        set.tasks = set.tasks.stale("locked by 7".into());
    }
    view.snapshot = Some(Arc::new(snapshot));
    let json = written(&view);
    assert_eq!(json["tasks"], json!([]));
    assert_eq!(json["sections"]["tasks"]["error"], "locked by 7");
    assert_eq!(json["executions"].as_array().unwrap().len(), 5, "the executions remain");
}
