//! Acting by keys: a confirmed action is executed and recorded, and if acting is not permitted, no question
//! is asked.

use tokio_postgres::Client;

use locktop::demo::scenario::{AdvisoryContention, ScratchSchema};

use super::dashboard::{Dashboard, session_exists};
use super::incident::Incident;
use super::support;

const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'locktop'";

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_root_of_200_is_ended_and_the_next_one_rises() {
    let server = support::server().await;
    let scratch = ScratchSchema::open(&support::database(server).await).await.unwrap();
    let crowd = AdvisoryContention::default().start(&scratch).await.unwrap();
    let root = crowd.facts.roots[0].pid();
    let client = support::open(&support::conninfo(server)).await.client;
    let mut dashboard = Dashboard::at((120, 35), &server.conninfo(), &[]);
    dashboard.screen.shows("blocks 200: 1 ");
    dashboard.select_first(&root.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.shows(&format!("pg_terminate_backend({root})"));
    assert!(session_exists(&client, root).await && dashboard.asked() == 0);
    dashboard.screen.keys("y");
    support::wait_until("the session to end", async || !session_exists(&client, root).await).await;
    dashboard.screen.shows("blocks 199: 1 ");
    dashboard.screen.hides("blocks 200");
    dashboard.done(1);
    assert_eq!(dashboard.asked(), 1);
    dashboard.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn read_only_has_neither_keys_nor_a_connection_to_act_on() {
    let incident = Incident::crowd(5).await;
    let root = incident.root();
    let client = support::open(&incident.info()).await.client;
    // The test's own connections have the same name.
    let before = count(&client, CONNECTIONS).await;
    for (arguments, connections) in [(&["--read-only"][..], 1), (&[][..], 2)] {
        let state = tempfile::tempdir().unwrap();
        let env = [("XDG_STATE_HOME", state.path().to_str().unwrap())];
        let mut screen = incident.screen((120, 35), &env, arguments);
        screen.shows("blocks 5: 1 ");
        // Without a second connection, one that reads names is opened and closed again.
        support::wait_until("the expected number of connections", async || {
            count(&client, CONNECTIONS).await == before + connections
        })
        .await;
        if connections == 1 {
            screen.keys("gKy");
            screen.keys("7");
            screen.shows("Backends ·");
            assert_eq!(count(&client, CONNECTIONS).await, before + 1);
        }
        screen.keys("q");
        assert_eq!(screen.wait_exit(), 0);
        assert!(session_exists(&client, root).await);
        assert!(!state.path().join("locktop/audit.jsonl").exists());
        support::wait_until("the connections to end", async || count(&client, CONNECTIONS).await == before)
            .await;
    }
}
