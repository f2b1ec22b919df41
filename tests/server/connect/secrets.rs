//! No password is printed anywhere: not on the screen or in the terminal's title, not in the record of actions, not in JSON or text,
//! not in an error.

use std::os::unix::fs::PermissionsExt;

use super::super::binary::{locktop, run_beside};
use super::super::dashboard::Dashboard;
use super::connected;
use super::server::Server;

/// The password to search for. No other word contains it.
const SECRET: &str = "xyzzy-plugh";

fn is_kept(text: &str, place: &str) {
    assert!(!text.contains(SECRET) && !text.contains("xyzzy"), "{place}: {text}");
}

/// A server on which the secret is the password of `alice`.
async fn server() -> Server {
    let server = Server::start(&["ssl=on"]).await;
    let admin = server.admin().await;
    admin.client.batch_execute(&format!("alter role alice password '{SECRET}'")).await.unwrap();
    server
}

#[tokio::test]
async fn passwords_do_not_appear_in_output_or_errors() {
    let server = server().await;
    let port = server.port;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("passwords");
    std::fs::write(&file, format!("*:*:*:*:{SECRET}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let uri =
        |user: &str, more: &str| format!("postgresql://{user}:{SECRET}@127.0.0.1:{port}/postgres?{more}");
    let plain = format!("host=127.0.0.1 port={port} dbname=postgres user=alice");
    for (target, env, works) in [
        (uri("alice", ""), None, true),
        (format!("{plain} password={SECRET}"), None, true),
        (plain.clone(), Some(("PGPASSWORD", SECRET.to_owned())), true),
        (plain.clone(), Some(("PGPASSFILE", file.display().to_string())), true),
        (uri("clear", ""), None, false),
        (uri("nobody-here", ""), None, false),
        (uri("alice", "zebra=1"), None, false),
        (uri("alice", "sslmode=verify-full&sslpassword=xyzzy"), None, false),
        (uri("alice", "dbname=nowhere"), None, false),
        (uri("alice", "port=1"), None, false),
        (format!("postgresql://alice:{SECRET}@@127.0.0.1:{port}/postgres"), None, false),
        (format!("postgresql://alice:{SECRET}%@127.0.0.1:{port}/postgres"), None, false),
        (format!("postgres:/alice:{SECRET}@127.0.0.1:{port}/postgres"), None, false),
        (format!("{plain} password='{SECRET}"), None, false),
        (format!("{plain} password= {SECRET} {SECRET}"), None, false),
        (format!("{plain} passwort={SECRET}"), None, false),
        (plain, Some(("PGPASSWORD", "wrong-xyzzy".to_owned())), false),
    ] {
        for format in ["json", "table"] {
            let mut command = locktop(&["-w", "snapshot", "--format", format, &target]);
            command.env("HOME", home.path()).envs(env.clone());
            let left = run_beside(command).await;
            assert_eq!(left.status == Some(0), works, "{target}: {}", left.err);
            is_kept(&left.out, "standard output");
            is_kept(&left.err, "standard error");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn passwords_do_not_appear_on_the_screen_or_in_records() {
    let mut server = server().await;
    let more = format!("user=alice password={SECRET} application_name=idler");
    let idler = connected(&server.tcp(&more)).await;
    let pid: i32 = idler.client.query_one("select pg_backend_pid()", &[]).await.unwrap().get(0);
    let config = format!(
        "[targets.shop]\nconninfo = \"postgresql://alice:{SECRET}@127.0.0.1:{}/postgres?sslmode=require\"\n",
        server.port
    );
    let mut dashboard = Dashboard::with((120, 35), "shop", &["--screen", "backends"], &config);
    dashboard.screen.shows("idler");
    dashboard.screen.keys("/idler<enter>");
    dashboard.select_first(&pid.to_string());
    dashboard.question("K", "y terminate");
    dashboard.screen.keys("y");
    dashboard.done(1);
    assert_eq!(dashboard.on_record(SECRET) + dashboard.on_record("xyzzy"), 0);
    // Each page of the help, and the loss of the server with its reason.
    dashboard.screen.keys("<esc><esc>?");
    dashboard.screen.shows("Help");
    dashboard.screen.keys("q");
    server.stop();
    dashboard.screen.shows("DOWN");
    dashboard.quit();
    is_kept(&String::from_utf8_lossy(&dashboard.screen.seen().raw), "the terminal");
}
