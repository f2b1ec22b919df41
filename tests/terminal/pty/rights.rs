//! A role that is not permitted to do all that it requests, and the program continues.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;

use super::dashboard::{Dashboard, session_exists};
use super::support;

const GRANT: &str = "GRANT pg_signal_backend TO \"ops\"";

/// The connection string of a role.
fn as_role(server: &EmbeddedServer, role: &str) -> String {
    server.conninfo().replace("user=postgres", &format!("user={role}"))
}

async fn session(server: &EmbeddedServer, role: &str, name: &str) -> (Connection, i32) {
    let connection = support::open(&ConnInfo::parse(&as_role(server, role)).unwrap()).await;
    let named = format!("SET application_name = '{name}'");
    connection.client.batch_execute(&named).await.unwrap();
    let pid = support::pid(&connection.client).await;
    (connection, pid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_forbidden_action_names_its_grant_and_the_permitted_ones_are_done() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let admin = support::open(&support::conninfo(&server)).await.client;
    let roles = "CREATE ROLE app LOGIN; CREATE ROLE ops LOGIN; GRANT pg_read_all_stats TO ops";
    admin.batch_execute(roles).await.unwrap();
    let (_app, foreign) = session(&server, "app", "theirs").await;
    let (_own, own) = session(&server, "ops", "ours").await;
    let mut dashboard = Dashboard::at((140, 35), &as_role(&server, "ops"), &["--screen", "backends"]);

    dashboard.screen.shows("Backends ·");
    // A session of another role: no question is asked, and the reason is shown.
    dashboard.screen.keys("/theirs<enter>");
    dashboard.select_first(&foreign.to_string());
    dashboard.screen.keys("K");
    dashboard
        .screen
        .shows(&format!("role \"ops\" is not permitted to terminate sessions of \"app\": {GRANT}"));
    dashboard.take_away(GRANT);
    dashboard.screen.keys("<esc>");
    dashboard.screen.hides("/theirs");

    // Together with one of its own sessions: the question is about that one, which is terminated.
    dashboard.screen.keys("/client !locktop<enter>");
    dashboard.screen.shows("shows 2 of");
    dashboard.screen.keys("*");
    dashboard.screen.shows("2 marked");
    dashboard.question("K", "y terminate");
    for words in [
        format!("Terminate {own} ops@ours"),
        format!("{foreign} app@theirs: role \"ops\""),
        "GRANT pg_signal_backend TO".to_owned(),
    ] {
        dashboard.screen.shows(&words);
    }
    dashboard.screen.keys("y");
    support::wait_until("the role's own session to end", async || !session_exists(&admin, own).await).await;
    support::wait_for("its result", || dashboard.on_record("\"event\":\"result\"") == 1);
    // The program continues.
    dashboard.screen.keys("2");
    dashboard.screen.shows("Chains ·");
    assert_eq!(dashboard.asked(), 1);
    dashboard.quit();
    assert!(session_exists(&admin, foreign).await);
}
