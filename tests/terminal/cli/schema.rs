//! The JSON is a contract: every key is present, in every row, with a value of its type.

use locktop::demo::scenario::{Scenario, ScratchSchema, Timing};
use locktop::model::Timestamp;
use serde_json::Value;

use super::document::printed;
use super::support::{database, open, server};

/// `key:type` for each key; a type with `?` may be null.
const DOCUMENT: &str = "format:int taken_at:time server:object backends:array prepared:array locks:array queues:array \
    edges:array edges_omitted:int roots:array cycles:array tasks:array executions:array leases:array queue:object \
    findings:array sections:object";
const SERVER: &str = "host:text port:int version_num:int version:text in_recovery:bool database:text connections:int max_connections:int \
    deadlocks:int";
const BACKEND: &str = "pid:int backend_start:time? leader_pid:int? database:text? user:text? application:text? \
    client:text? backend_type:text? state:text? wait_event_type:text? wait_event:text? xact_start:time? \
    query_start:time? state_change:time? backend_xid:int? backend_xmin:int? query_id:int? query:text?";
const PREPARED: &str = "gid:text virtualtransaction:text database:text owner:text prepared:time";
const LOCK: &str = "locktype:text database:int? relation:int? relation_name:text? page:int? tuple:int? \
    virtualxid:text? transactionid:int? classid:int? objid:int? objsubid:int? key:object? name:text? mode:text \
    granted:bool pid:int? gid:text? virtualtransaction:text wait_start:time?";
const QUEUE: &str = "lock:int holders:array waiters:array";
const EDGE: &str = "waiter:int blocker:int gid:text? kind:text lock:int inferred:bool";
const ROOT: &str = "pid:int gid:text? blocked:int frees:int in_turn:int still_blocked:int may_stay_blocked:int others_must_end:int? longest_wait:number";
const WORK_QUEUE: &str = "pending:int processing:int completed:int failed:int oldest_pending_at:time?";
const FINDING: &str = "check:text severity:text summary:text subject:object";
const SECTION: &str = "taken_at:time error:text?";

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "int" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "bool" => value.is_boolean(),
        "text" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        // RFC 3339 with an offset.
        "time" => serde_json::from_value::<Timestamp>(value.clone()).is_ok(),
        _ => panic!("no type {kind}"),
    }
}

fn conforms(what: &str, value: &Value, contract: &str) {
    for (key, kind) in contract.split_whitespace().map(|entry| entry.split_once(':').unwrap()) {
        let found = value.get(key).unwrap_or_else(|| panic!("{what} has no {key}: {value}"));
        let fits = match kind.strip_suffix('?') {
            Some(kind) => found.is_null() || is(kind, found),
            None => is(kind, found),
        };
        assert!(fits, "{what}.{key} is {found}, not {kind}");
    }
}

fn all_conform(what: &str, value: &Value, contract: &str) {
    let rows = value[what].as_array().unwrap();
    assert!(!rows.is_empty(), "{what} has no rows");
    for row in rows {
        conforms(what, row, contract);
    }
}

#[tokio::test]
async fn every_key_is_present_with_its_type() {
    let server = server().await;
    let info = database(server).await;
    let scratch = ScratchSchema::open(&info).await.unwrap();
    let mut running = Vec::new();
    for scenario in [Scenario::Prepared, Scenario::Deadlock, Scenario::TupleLocks] {
        running.push(scenario.start(&scratch, Timing::TEST).await.unwrap());
    }
    let holder = open(&info).await.client;
    holder.batch_execute("SELECT pg_advisory_lock(72707369), pg_advisory_lock(-1, 100)").await.unwrap();
    let text = printed(server, &info, "json").await;
    assert_eq!(text.lines().count(), 1, "one object, one line");
    let json: Value = serde_json::from_str(&text).unwrap();
    conforms("the document", &json, DOCUMENT);
    assert_eq!(json["format"], 1);
    conforms("server", &json["server"], SERVER);
    for (what, contract) in [
        ("backends", BACKEND),
        ("prepared", PREPARED),
        ("locks", LOCK),
        ("queues", QUEUE),
        ("edges", EDGE),
        ("roots", ROOT),
        ("findings", FINDING),
    ] {
        all_conform(what, &json, contract);
    }
    conforms("queue", &json["queue"], WORK_QUEUE);
    for section in ["server", "backends", "locks", "prepared"] {
        conforms(section, &json["sections"][section], SECTION);
    }
    let cycle = json["cycles"][0].as_array().unwrap();
    assert!(cycle.len() == 2 && cycle.iter().all(|pid| is("int", pid)), "{cycle:?}");
    keys_of_advisory_locks(&json);
    for running in running {
        running.stop().await.unwrap();
    }
    scratch.remove().await.unwrap();
}

fn keys_of_advisory_locks(json: &Value) {
    let keys: Vec<&Value> = json["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| &lock["key"])
        .filter(|key| !key.is_null())
        .collect();
    assert!(
        keys.contains(&&serde_json::json!({"kind": "bigint", "value": 72_707_369, "text": "72707369"})),
        "{keys:?}"
    );
    assert!(keys.contains(&&serde_json::json!({"kind": "pair", "classid": -1, "objid": 100})), "{keys:?}");
}
