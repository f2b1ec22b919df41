//! Through a pooler that gives every transaction another session.

use locktop::model::plan::{Request, Selection};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::SchemaName;
use locktop_tasks::recovery::{execute, plan};

use super::db::{Session, ask};
use super::pooler::Pooler;
use super::stage::{Stage, order, outcomes};
use super::support::{oldest, open, server_of};

#[tokio::test]
async fn every_step_is_whole_in_a_session_of_its_own() {
    let version = oldest();
    let stage = Stage::new(version).await;
    for name in ["one", "two", "three"] {
        stage.orphan(name).await;
    }
    let _worker = stage.slow("slow").await;
    let pooler = Pooler::start_with(server_of(version).await, "transaction", "server_round_robin = 1");
    let info = ConnInfo::parse(&pooler.target(&stage.info)).unwrap();
    // Two sessions in the pool, which take turns.
    let (through, other) = (open(&info).await, open(&info).await);
    for client in [&through.client, &other.client] {
        client.batch_execute("BEGIN; SELECT 1").await.unwrap();
    }
    for client in [&through.client, &other.client] {
        client.batch_execute("COMMIT").await.unwrap();
    }
    let request = Request { select: Selection::Longer(None), task: None, terminate: true };
    let schema = SchemaName::default();
    let plan = plan(&through.client, &schema, &request).await.unwrap();
    let results = execute(&through.client, &schema, &plan, &order(), |_| {}).await;
    let all = ["one recovered", "two recovered", "three recovered", "slow recovered"];
    assert_eq!(outcomes(&plan, &results), all, "{results:?}");
    assert_eq!(stage.admin.ask("SELECT count(DISTINCT session_pid) FROM locktop_audit").await, "2");
    // Nothing stays behind in either.
    let session = Session::open_plain(&stage.info).await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
    assert_eq!(session.ask(open).await, "0");
    let settings = "SELECT pg_backend_pid(), current_setting('lock_timeout'), current_setting('search_path')";
    let mut pids = Vec::new();
    for _ in 0..2 {
        let answer = ask(&through.client, settings).await.unwrap();
        let (pid, rest) = answer.split_once('|').unwrap();
        assert_eq!(rest, "0|\"$user\", public");
        pids.push(pid.to_owned());
    }
    assert_ne!(pids[0], pids[1]);
}
