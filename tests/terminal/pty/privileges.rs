//! The view of the same incident for each kind of role, and which missing privileges are reported to it.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::conninfo::ConnInfo;
use serde_json::Value;
use tokio_postgres::Client;

use super::dashboard::{Dashboard, becomes};
use super::{binary, support};

/// A role, and what it sees of the incident.
struct Role {
    name: &'static str,
    /// The statements that create it.
    setup: &'static str,
    /// Whether it sees the states and queries of others.
    sees: bool,
    /// The privileges it lacks to terminate the root; `None` if it is permitted to.
    lacks: Option<&'static str>,
}

const ROLES: [Role; 5] = [
    Role { name: "postgres", setup: "", sees: true, lacks: None },
    Role {
        name: "monitor",
        setup: "CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor",
        sees: true,
        lacks: Some("pg_signal_backend"),
    },
    Role {
        name: "stats",
        setup: "CREATE ROLE stats LOGIN; GRANT pg_read_all_stats TO stats",
        sees: true,
        lacks: Some("pg_signal_backend"),
    },
    Role {
        name: "signals",
        setup: "CREATE ROLE signals LOGIN; GRANT pg_signal_backend TO signals",
        sees: false,
        lacks: Some("pg_read_all_stats"),
    },
    Role {
        name: "nobody",
        setup: "CREATE ROLE nobody LOGIN",
        sees: false,
        lacks: Some("pg_read_all_stats, pg_signal_backend"),
    },
];

/// The connection string of a role.
fn target(server: &EmbeddedServer, role: &str) -> String {
    server.conninfo().replace("user=postgres", &format!("user={role}"))
}

async fn session(server: &EmbeddedServer, role: &str, name: &str) -> (Client, i32) {
    let info = ConnInfo::parse(&target(server, role)).unwrap().with_application_name(name);
    let client = support::open(&info).await.client;
    let pid = support::pid(&client).await;
    (client, pid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_role_sees_the_root_and_the_privileges_it_lacks() {
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let admin = support::open(&support::conninfo(&server)).await.client;
    let setup = "CREATE ROLE app LOGIN; CREATE TABLE accounts (); GRANT ALL ON accounts TO PUBLIC";
    admin.batch_execute(setup).await.unwrap();
    for role in &ROLES {
        admin.batch_execute(role.setup).await.unwrap();
    }
    let (holder, root) = session(&server, "app", "shop").await;
    holder.batch_execute("BEGIN; LOCK TABLE accounts").await.unwrap();
    // A role without privileges waits for another role's session.
    let (stuck, waiter) = session(&server, "nobody", "stuck").await;
    let waits = tokio::spawn(async move { stuck.batch_execute("SELECT FROM accounts").await });
    becomes(&admin, &format!("SELECT pg_blocking_pids({waiter})"), &format!("{{{root}}}")).await;

    for role in &ROLES {
        on_the_screen(&server, role, root, waiter);
        in_the_json(&server, role, root, waiter);
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    waits.await.unwrap().unwrap();
}

fn on_the_screen(server: &EmbeddedServer, role: &Role, root: i32, waiter: i32) {
    let config = "[thresholds]\nidle_in_transaction = \"1s\"\n";
    let mut dashboard =
        Dashboard::with((140, 35), &target(server, role.name), &["--screen", "chains"], config);
    // The session and the number of its waiters are visible to each role.
    dashboard.select_first(&root.to_string());
    dashboard.screen.shows("      1 · since ");
    dashboard.screen.shows("app@shop");
    dashboard.screen.shows(&waiter.to_string());
    dashboard.screen.shows("accounts AccessShare");
    let hidden = format!("other roles' activity is hidden: GRANT pg_read_all_stats TO \"{}\"", role.name);
    if role.sees {
        dashboard.screen.shows("idle in xact");
        dashboard.screen.shows("LOCK TABLE accounts");
        dashboard.screen.hides(&hidden);
    } else {
        dashboard.screen.shows("hidden from this role");
        dashboard.screen.keys("1");
        dashboard.screen.shows(&hidden);
        dashboard.screen.keys("2");
        // The state is not visible, and is not shown.
        dashboard.screen.hides("idle in xact");
        dashboard.screen.keys("7");
        dashboard.screen.shows(" hidden from this role");
        dashboard.screen.keys("2");
        dashboard.select_first(&root.to_string());
    }
    match role.lacks {
        None => {
            dashboard.screen.hides("not permitted");
            dashboard.question("K", "y terminate");
            dashboard.screen.keys("<esc>");
            dashboard.screen.hides("y terminate");
        }
        Some(grant) => {
            dashboard.screen.keys("1");
            dashboard.screen.shows("this role is not permitted to terminate");
            dashboard.screen.keys("K");
            let words = format!(
                "is not permitted to terminate sessions of \"app\": GRANT {grant} TO \"{}\"",
                role.name
            );
            dashboard.screen.shows(&words);
            dashboard.take_away(&words);
        }
    }
    assert_eq!(dashboard.asked(), 0);
    dashboard.quit();
}

fn in_the_json(server: &EmbeddedServer, role: &Role, root: i32, waiter: i32) {
    let target = target(server, role.name);
    let left = binary::run(binary::locktop(&["-w", "snapshot", "--format", "json", &target]));
    assert_eq!(left.status, Some(0), "{left:?}");
    let json: Value = serde_json::from_str(&left.out).unwrap();
    let (first, edge) = (&json["roots"][0], &json["edges"][0]);
    assert_eq!((first["pid"].as_i64(), first["blocked"].as_i64()), (Some(root.into()), Some(1)), "{json}");
    assert_eq!((edge["waiter"].as_i64(), edge["blocker"].as_i64()), (Some(waiter.into()), Some(root.into())));
    let backends = json["backends"].as_array().unwrap();
    let holder = backends.iter().find(|backend| backend["pid"] == root).unwrap();
    assert_eq!((holder["user"].as_str(), holder["application"].as_str()), (Some("app"), Some("shop")));
    // Hidden values are null there, and a finding names the grant that would show them.
    let state = role.sees.then_some("idle in transaction");
    assert_eq!((holder["state"].as_str(), holder["backend_start"].is_null()), (state, !role.sees));
    let findings = json["findings"].as_array().unwrap();
    let hidden = findings.iter().find(|finding| finding["check"] == "hidden_activity");
    let grant = format!("GRANT pg_read_all_stats TO \"{}\"", role.name);
    assert_eq!(hidden.is_some(), !role.sees);
    assert!(
        hidden.is_none_or(|finding| finding["summary"].as_str().unwrap().ends_with(&grant)),
        "{hidden:?}"
    );
}
