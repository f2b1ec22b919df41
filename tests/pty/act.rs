//! Acting by keys: what was confirmed happens and is on record, and where nobody may act there is nobody to ask.

use tokio_postgres::Client;

use crate::incident::Incident;
use crate::support;

const OURS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'locktop'";

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn is_there(client: &Client, pid: i32) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";
    client.query_one(sql, &[&pid]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_root_is_ended_and_the_next_one_rises() {
    let incident = Incident::crowd(30).await;
    let root = incident.root();
    let client = support::open(&incident.info()).await.client;
    let state = tempfile::tempdir().unwrap();
    let env = [("XDG_STATE_HOME", state.path().to_str().unwrap())];
    let mut screen = incident.screen((120, 35), &env, &[]);
    screen.shows("blocks 30, frees 1 now");
    screen.keys("g");
    screen.shows_selected(&root.to_string());
    screen.keys("K");
    screen.shows(&format!("pg_terminate_backend({root})"));
    // What is typed before the question has been on the screen for a moment is dropped.
    support::wait_until("it has ended", async || {
        screen.keys("y");
        !is_there(&client, root).await
    })
    .await;
    screen.shows("blocks 29, frees 1 now");
    let record = state.path().join("locktop/audit.jsonl");
    support::wait_for("both ends of it to be on record", || {
        let lines = std::fs::read_to_string(&record).unwrap_or_default();
        let has = |words: &str| lines.lines().any(|line| line.contains(words));
        has("\"event\":\"asked\"") && has("\"fate\":\"done\"")
    });
    screen.keys("q");
    assert_eq!(screen.wait_exit(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn read_only_has_neither_keys_nor_a_connection_to_act_on() {
    let incident = Incident::crowd(5).await;
    let root = incident.root();
    let client = support::open(&incident.info()).await.client;
    // Those of the test have the same name.
    let before = count(&client, OURS).await;
    for (arguments, connections) in [(&["--read-only"][..], 1), (&[][..], 2)] {
        let state = tempfile::tempdir().unwrap();
        let env = [("XDG_STATE_HOME", state.path().to_str().unwrap())];
        let mut screen = incident.screen((120, 35), &env, arguments);
        screen.shows("blocks 5, frees 1 now");
        // One that reads names where there is no second one is closed again.
        support::wait_until("there are as many connections", async || {
            count(&client, OURS).await == before + connections
        })
        .await;
        if connections == 1 {
            screen.keys("gKy");
            screen.keys("7");
            screen.shows("Backends ·");
            assert_eq!(count(&client, OURS).await, before + 1);
        }
        screen.keys("q");
        assert_eq!(screen.wait_exit(), 0);
        assert!(is_there(&client, root).await);
        assert!(!state.path().join("locktop/audit.jsonl").exists());
        support::wait_until("it is gone", async || count(&client, OURS).await == before).await;
    }
}
