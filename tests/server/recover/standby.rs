//! A standby, which does not see the primary's locks, and its promotion.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::plan::{Request, Selection};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use locktop_tasks::recovery::{RecoverError, plan};

use super::binary::{locktop, run_beside};
use super::db::Session;
use super::document::printed;
use super::support::{conninfo, open, versions, wait_until};

const ORPHANS: &str = "SELECT count(*) FROM recovery_candidates()";

/// A primary and its standby, with an execution in both whose session ended when the primary was shut down for the copy.
struct Pair {
    primary: EmbeddedServer,
    standby: EmbeddedServer,
}

impl Pair {
    async fn new(version: u32) -> Self {
        let options = Options { version: Some(version), ..Options::default() };
        let mut primary = EmbeddedServer::start(options.clone()).await.unwrap();
        schema::install(&mut open(&conninfo(&primary)).await.client, &SchemaName::default()).await.unwrap();
        let worker = Session::open(&conninfo(&primary)).await;
        worker.run("INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('report', 'x', now())").await;
        assert_eq!(worker.ask("SELECT task_name FROM fetch_tasks('w')").await, "report");
        worker.run("UPDATE task_execution_log SET started_at = now() - interval '2 hours', heartbeat_at = now() - interval '1 hour'").await;
        super::restart::work_on_an_item(&worker).await;
        let standby = primary.standby(options).await.unwrap();
        Self { primary, standby }
    }

    async fn session(server: &EmbeddedServer) -> Session {
        Session::open(&conninfo(server)).await
    }
}

async fn recover(server: &EmbeddedServer, arguments: &[&str]) -> (Option<i32>, String, String) {
    let target = server.conninfo();
    let left = run_beside(locktop(&[&["recover", "--yes", &target], arguments].concat())).await;
    (left.status, left.out, left.err)
}

/// The states of the executions and of the items of the queue in the JSON of a snapshot.
async fn states(server: &EmbeddedServer, info: &ConnInfo) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&printed(server, info, "json").await).unwrap();
    let rows = ["executions", "queue_items"].map(|name| json[name].as_array().unwrap().clone()).concat();
    rows.iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn on_a_standby_nothing_is_an_orphan() {
    for version in versions() {
        let pair = Pair::new(version).await;
        let replica = Pair::session(&pair.standby).await;
        replica.run("SET locktop.orphan_grace = '0'").await;
        assert_eq!(
            replica.ask("SELECT pg_is_in_recovery(), state FROM running_tasks").await,
            "t|unknown",
            "{version}"
        );
        assert_eq!(replica.ask(ORPHANS).await, "0");
        let info = conninfo(&pair.standby);
        assert_eq!(replica.ask("SELECT state FROM running_queue_items").await, "unknown", "{version}");
        assert_eq!(states(&pair.standby, &info).await, ["unknown", "unknown"]);
        let (status, out, err) = recover(&pair.standby, &[]).await;
        let expected =
            "locktop: a standby cannot recover tasks or show which are running: connect to the primary\n";
        assert_eq!((status, out.as_str(), err.as_str()), (Some(1), "", expected), "{version}");
        let request = Request { select: Selection::Longer(Some(0.0)), task: None, terminate: true };
        let refused = plan(&replica.connection.client, &SchemaName::default(), &request).await;
        assert_eq!(refused, Err(RecoverError::Standby));
        // The primary was shut down and started, which ended the session; and that was a moment ago.
        let primary = Pair::session(&pair.primary).await;
        assert_eq!(primary.ask("SELECT state FROM running_tasks").await, "settling");
        assert_eq!(primary.ask("SELECT state FROM running_queue_items").await, "settling");
        // A lock on the primary is not visible on the standby.
        primary.run("UPDATE scheduled_tasks SET next_run_at = now(); SET locktop.orphan_grace = '0'").await;
        assert_eq!(primary.ask("SELECT task_name FROM fetch_tasks('v')").await, "report");
        wait_until("the standby to follow", async || {
            replica.ask("SELECT worker_id, state FROM running_tasks").await == "v|unknown"
        })
        .await;
    }
}

#[tokio::test]
async fn a_promotion_restarts_the_grace() {
    for version in versions() {
        let pair = Pair::new(version).await;
        let standby = Pair::session(&pair.standby).await;
        // The standby has been up for longer than the grace when it is promoted: that does not count.
        wait_until("the standby to be up for a while", async || {
            standby.ask("SELECT clock_timestamp() > pg_postmaster_start_time() + interval '2 s'").await == "t"
        })
        .await;
        standby.run("SELECT pg_promote()").await;
        let info = conninfo(&pair.standby);
        assert_eq!(
            standby.ask("SELECT pg_is_in_recovery(), state FROM running_tasks").await,
            "f|settling",
            "{version}"
        );
        assert_eq!(standby.ask("SELECT state FROM running_queue_items").await, "settling", "{version}");
        assert_eq!(states(&pair.standby, &info).await, ["settling", "settling"]);
        let since = "SELECT up_since() > pg_postmaster_start_time() + interval '2 s'";
        assert_eq!(standby.ask(since).await, "t", "{version}: since the promotion");
        let (status, out, _) = recover(&pair.standby, &[]).await;
        assert!(
            status == Some(0) && out.starts_with("Nothing to recover. Not included: 1 with a free key"),
            "{out}"
        );
        super::restart::orphan_exactly_after_the_grace(&standby).await;
        standby.run("ALTER DATABASE postgres SET locktop.orphan_grace = '1s'").await;
        let (status, out, err) = recover(&pair.standby, &[]).await;
        assert!(status == Some(0) && out.ends_with("1 of 1 recovered.\n"), "{version} {out} {err}");
    }
}
