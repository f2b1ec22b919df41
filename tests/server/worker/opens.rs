//! When a worker can start, and when it refuses to.

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::locks::work_session::{OpenError, Source, WorkSession, WorkerId};
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::SchemaName;

use super::db::{Session, installed};
use super::hand::{log, task};
use super::process::{Process, target};
use super::support::{conninfo, open, server, wait_until};

#[tokio::test]
async fn a_schema_that_is_older_is_refused_with_the_remedy() {
    let info = super::support::database(server().await).await;
    let schema = SchemaName::default();
    let mut connection = open(&info).await;
    let id: WorkerId = "w".parse().unwrap();
    let error = WorkSession::open(&info, &schema, &id, &Source::ALL).await.unwrap_err();
    assert!(matches!(error, OpenError::NoSchema { .. }), "{error}");
    locktop::schema::install_up_to(&mut connection.client, &schema, 1).await.unwrap();
    let error = WorkSession::open(&info, &schema, &id, &Source::ALL).await.unwrap_err();
    assert!(matches!(error, OpenError::OldSchema { found: 1, .. }), "{error}");
    assert!(error.to_string().contains("run `locktop schema install` to upgrade it"), "{error}");
}

#[tokio::test]
async fn a_standby_is_refused() {
    let mut server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = conninfo(&server);
    let mut connection = open(&info).await;
    let schema = SchemaName::default();
    locktop::schema::install(&mut connection.client, &schema).await.unwrap();
    connection.client.batch_execute("CHECKPOINT").await.unwrap();
    server.kill_hard().await.unwrap();
    std::fs::write(server.socket_dir().join("data/standby.signal"), "").unwrap();
    server.restart().await.unwrap();
    let error = WorkSession::open(&info, &schema, &"w".parse().unwrap(), &Source::ALL).await.unwrap_err();
    assert!(matches!(error, OpenError::Standby), "{error}");
    server.stop().await.unwrap();
}

/// It needs the rights that the functions need, and none of a superuser's; and it waits while no connection is left.
#[tokio::test]
async fn an_ordinary_role_is_enough_and_a_full_server_is_waited_for() {
    let options = Options::default()
        .with("max_connections", 8)
        .with("superuser_reserved_connections", 3)
        .with("max_wal_senders", 0);
    let server = EmbeddedServer::start(options).await.unwrap();
    let mut connection = open(&conninfo(&server)).await;
    locktop::schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let session = Session::open(&conninfo(&server)).await;
    session.run("CREATE ROLE ordinary LOGIN").await;
    task(&session, "t", "sql", "'{\"statement\": \"SELECT 1\"}'").await;
    let target = server.conninfo().replace("user=postgres", "user=ordinary");
    let info = ConnInfo::parse(&target).unwrap();
    // The reported GRANT helps, whichever privilege is missing; and it is enough.
    let schema = SchemaName::default();
    let mut lacking = String::new();
    for grant in [
        "",
        "GRANT USAGE ON SCHEMA locktop TO ordinary; GRANT SELECT ON ALL TABLES IN SCHEMA locktop TO ordinary",
    ] {
        session.run(grant).await;
        let error = WorkSession::open(&info, &schema, &"w".parse().unwrap(), &Source::ALL).await.unwrap_err();
        let OpenError::Forbidden { message, needs } = error else { panic!("{error}") };
        assert!(
            message.contains("permission denied")
                || message.contains("no UPDATE on scheduled_tasks and 4 more"),
            "{message}"
        );
        lacking = needs;
    }
    session.run(&lacking).await;
    let mut taken = Vec::new();
    while let Ok(connection) = connect(&info).await {
        taken.push(connection);
        assert!(taken.len() <= 8, "one connection is always left");
    }
    let process = Process::start("w", &[], &target);
    process.wait_for("has no free connection").await;
    drop(taken);
    wait_until("the task to be run", async || log(&session).await == "w|completed|-").await;
    let waiting = process.log().lines().filter(|line| line.ends_with("; waiting")).count();
    assert_eq!(waiting, 1, "it is reported once: {}", process.log());
    server.stop().await.unwrap();
}

/// The schema is dropped while a worker runs, and installed again.
#[tokio::test]
async fn a_worker_waits_while_its_schema_is_dropped_and_reinstalled() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let process = Process::start("w", &[], &target(version, &info).await);
    process.wait_for("connected").await;
    session.run("DROP SCHEMA locktop CASCADE").await;
    session.run("NOTIFY locktop_tasks, 'locktop'").await;
    process.wait_for("connection lost: the schema has changed").await;
    process.wait_for("no schema \"locktop\"").await;
    let mut connection = open(&info).await;
    locktop::schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let session = Session::open(&info).await;
    task(&session, "t", "sleep", "'{\"seconds\": 0}'").await;
    wait_until("it to work", async || log(&session).await == "w|completed|-").await;
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(process.ended().await.status, Some(0));
}
