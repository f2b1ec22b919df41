//! The dashboard in daily use: it starts with its last settings, notifies a user who does not watch it, and
//! limits its load on the server.

use locktop::demo::scenario::AdvisoryContention;
use locktop::pg::conninfo::ConnInfo;
use tokio_postgres::Client;

use super::dashboard::{Dashboard, session_exists};
use super::incident::Incident;
use super::support;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_begins_as_it_was_left() {
    let server = support::server().await;
    support::database(server).await;
    let size = (120, 35);
    let mut dashboard = Dashboard::at(size, &server.conninfo(), &[]);
    dashboard.screen.shows("─ Chains");
    dashboard.screen.keys("7");
    dashboard.screen.shows("─ Backends");
    dashboard.screen.keys("sj");
    dashboard.screen.shows("Sort Backends");
    dashboard.screen.keys("<enter>");
    dashboard.screen.wait_for("the order", |screen| screen.contents().contains("· by "));
    let order = |contents: &str| {
        let title = contents.lines().find(|line| line.contains("─ Backends")).unwrap_or_default().to_owned();
        title.split("· by ").nth(1).map(|rest| rest.chars().take(8).collect::<String>())
    };
    let before = order(&dashboard.screen.contents());
    dashboard.quit();
    dashboard.again(size, &server.conninfo(), &[]);
    dashboard.screen.shows("─ Backends");
    dashboard.screen.wait_for("the order", |screen| screen.contents().contains("· by "));
    assert_eq!(order(&dashboard.screen.contents()), before);
    dashboard.quit();
    dashboard.again(size, &server.conninfo(), &["--screen", "events"]);
    dashboard.screen.shows("─ Events");
    dashboard.quit();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_critical_finding_rings_the_bell_and_appears_in_the_title() {
    let incident = Incident::none().await;
    let config = "notify = [\"bell\", \"title\", \"osc9\", \"osc777\"]\n[thresholds]\nblocked = 3\n";
    let mut dashboard = Dashboard::with((120, 35), &incident.server.conninfo(), &[], config);
    let has = |raw: &[u8], text: &str| raw.windows(text.len()).any(|window| window == text.as_bytes());
    dashboard.screen.wait("its own title", |seen| has(&seen.raw, "\x1b[22;2t\x1b]2;locktop "));
    assert!(!has(&dashboard.screen.seen().raw, "\x1b]9;"), "nothing has happened yet");
    let crowd = AdvisoryContention { waiters: 3, ..AdvisoryContention::default() }
        .start(&incident.scratch)
        .await
        .unwrap();
    let root = crowd.facts.roots[0].pid();
    dashboard.screen.wait("both notifications", |seen| {
        has(&seen.raw, "\x07\x1b]9;locktop: ") && has(&seen.raw, "\x1b]777;notify;locktop;")
    });
    dashboard.screen.wait("the title", |seen| has(&seen.raw, &format!("\x1b]2;CRIT {root} ")));
    dashboard.quit();
    let raw = dashboard.screen.seen().raw.clone();
    assert!(has(&raw, "\x1b[23;2t"), "the title that the window had is back");
    assert_eq!(raw.windows(4).filter(|window| window == b"\x1b]9;").count(), 1, "it is reported once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_expensive_poll_is_run_less_often() {
    let server = support::server().await;
    support::database(server).await;
    // Any time for reading pg_locks is above this limit.
    let mut dashboard = Dashboard::with((120, 35), &server.conninfo(), &[], "server_load = 0.0000001\n");
    dashboard.screen.shows("refreshing every 60s: reading pg_locks takes the server");
    dashboard.screen.shows("LIVE 0.2s → 60s");
    dashboard.screen.keys("-");
    dashboard.screen.shows("requested every 0.5s; every 60s to limit the server's load");
    dashboard.quit();
}

async fn idle_in_transaction(info: &ConnInfo, application: &str) -> Client {
    let client = support::open(&info.clone().with_application_name(application)).await.client;
    client.batch_execute("BEGIN; SELECT 1").await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sessions_of_a_kind_are_ended_by_a_filter_and_marks() {
    let server = support::server().await;
    let info = support::database(server).await;
    let admin = support::open(&info).await.client;
    let mut left_open = Vec::new();
    for _ in 0..3 {
        left_open.push(idle_in_transaction(&info, "billing-7").await);
    }
    let others = [
        idle_in_transaction(&info, "web-7").await,
        support::open(&info.clone().with_application_name("billing-7")).await.client,
    ];
    let mut pids = Vec::new();
    for client in left_open.iter().chain(&others) {
        pids.push(support::pid(client).await);
    }
    let mut dashboard = Dashboard::at((120, 35), &server.conninfo(), &["--screen", "backends"]);
    dashboard.screen.shows("─ Backends");
    dashboard.screen.keys("/who:billing-7 state:\"idle in transaction\" xact>0<enter>");
    dashboard.screen.shows("shows 3 of ");
    dashboard.screen.keys("*");
    dashboard.screen.shows("3 marked");
    dashboard.question("K", "Terminate 3");
    // One of the sessions commits while the question is open.
    left_open[0].batch_execute("COMMIT").await.unwrap();
    // This replaces the question, and the new one ignores keys that were typed before it was drawn.
    dashboard.screen.wait_for("the question as it is now", |screen| {
        let contents = screen.contents();
        contents.contains("its transaction has ended: skipped") && contents.contains("terminate: _")
    });
    dashboard.screen.keys("3<enter>");
    dashboard.screen.shows("2 of 3 terminated");
    for (at, is_left) in [(0, true), (1, false), (2, false), (3, true), (4, true)] {
        support::wait_until("the right sessions to be terminated", async || {
            session_exists(&admin, pids[at]).await == is_left
        })
        .await;
    }
    dashboard.quit();
}
