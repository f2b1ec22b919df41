//! A role that may do less than it wants, and the program goes on.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::Connection;
use locktop::pg::conninfo::ConnInfo;

use crate::desk::{Desk, is_there, pid_of};
use crate::support;

/// How to get there as another role.
fn as_role(server: &EmbeddedServer, role: &str) -> String {
    server.conninfo().replace("user=postgres", &format!("user={role}"))
}

async fn session(server: &EmbeddedServer, role: &str, name: &str) -> (Connection, i32) {
    let connection = support::open(&ConnInfo::parse(&as_role(server, role)).unwrap()).await;
    let named = format!("SET application_name = '{name}'");
    connection.client.batch_execute(&named).await.unwrap();
    let pid = pid_of(&connection.client).await;
    (connection, pid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_role_may_not_do_is_named_with_its_grant_and_the_rest_is_done() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let admin = support::open(&support::conninfo(&server)).await.client;
    let roles = "CREATE ROLE app LOGIN; CREATE ROLE ops LOGIN; GRANT pg_read_all_stats TO ops";
    admin.batch_execute(roles).await.unwrap();
    let (_app, foreign) = session(&server, "app", "theirs").await;
    let (_own, own) = session(&server, "ops", "ours").await;
    let mut desk = Desk::at((140, 35), &as_role(&server, "ops"), &["--screen", "backends"]);
    let grant = "GRANT pg_signal_backend TO \"ops\"";

    desk.screen.shows("Backends ·");
    // One that is another role's: said before, and by the server after.
    desk.screen.keys("/theirs<enter>");
    desk.select_first(&foreign.to_string());
    desk.screen.keys("K");
    desk.screen.shows(grant);
    println!("{}", desk.screen.contents());
    desk.screen.keys("y");
    desk.screen.keys("<esc>");

    // Together with one of its own.
    desk.screen.keys("<esc>/rs<enter>");
    println!("{}", desk.screen.contents());
    desk.screen.keys("*");
    desk.screen.keys("K");
    desk.screen.shows("Terminate");
    println!("{}", desk.screen.contents());
    desk.quit();
    assert!(is_there(&admin, foreign).await && is_there(&admin, own).await);
}
