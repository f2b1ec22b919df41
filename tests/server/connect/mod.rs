//! Connecting: to a real server, to one that is down, and to listeners that are no server.

mod fake;
pub(crate) mod flood;
mod hostile_settings;
mod psql;
mod secrets;
mod server;
mod tls;

use super::support;
use locktop::pg::connect::{Connection, connect, connect_somewhere};
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::error::{ConnectError, ConnectErrorKind};
use server::{Server, free_port, info};

async fn refused(info: &ConnInfo) -> ConnectError {
    match connect(info).await {
        Ok(_) => panic!("{} was connected to", info.describe()),
        Err(error) => error,
    }
}

async fn connected(info: &ConnInfo) -> Connection {
    connect(info).await.unwrap_or_else(|error| panic!("{}: {error}", info.describe()))
}

async fn ask(connection: &Connection, sql: &str) -> String {
    connection.client.query_one(sql, &[]).await.unwrap().get(0)
}

const IS_TLS: &str = "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()";

#[tokio::test]
async fn an_error_names_the_place_where_no_server_listens() {
    let port = free_port();
    let error = refused(&info(&format!("host=127.0.0.1 port={port}"))).await;
    assert_eq!(
        error.to_string(),
        format!(
            "connection to 127.0.0.1:{port} refused: is the server running on host \"127.0.0.1\" and accepting \
             connections on port {port}?"
        )
    );
    assert!(!error.is_waitable() && error.sqlstate().is_none());
    let by_address = refused(&info(&format!("hostaddr=127.0.0.1 port={port}"))).await;
    assert_eq!(by_address.to_string(), error.to_string(), "an address without a name is named");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".s.PGSQL.5432");
    let socket = info(&format!("host={}", directory.path().display()));
    assert!(
        refused(&socket).await.to_string().starts_with(&format!("no server socket {}: ", path.display()))
    );
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert_eq!(
        refused(&socket).await.to_string(),
        format!("no server listens on the socket {}: is the server running?", path.display())
    );
    assert!(refused(&info("host=no-such-host.invalid")).await.kind == ConnectErrorKind::UnknownHost);
    let nothing = refused(&info(&format!("port={port}"))).await;
    assert!(matches!(nothing.kind, ConnectErrorKind::NothingLocal { .. }), "{nothing}");
}

#[tokio::test]
async fn passwords() {
    let server = Server::start(&[]).await;
    let place = server.place();
    let wrong = refused(&server.tcp("user=alice password=wr0ng")).await;
    assert_eq!(
        wrong.to_string(),
        format!(
            "{place} rejects the password of \"alice\" (from the connection string): password authentication failed \
             for user \"alice\""
        )
    );
    assert_eq!(wrong.sqlstate(), Some("28P01"));
    assert!(!format!("{wrong:?}").contains("wr0ng"));

    let none = refused(&server.tcp("user=alice")).await;
    assert!(none.needs_password());
    assert_eq!(
        none.to_string(),
        format!(
            "{place} requires the password of \"alice\", but none was given: use -W, PGPASSWORD or a line in the \
             password file"
        )
    );
    for user in ["alice", "clear", "hashed"] {
        let connection = connected(&server.tcp(&format!("user={user} password=right"))).await;
        assert_eq!(ask(&connection, "select current_user::text").await, user);
    }
    let typed = server.tcp("user=alice").with_password(locktop::pg::conninfo::Secret::new("right"));
    connected(&typed).await;
    connected(&typed).await;
}

#[tokio::test]
async fn password_file() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(&[]).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("passwords");
    let write = |password: &str, mode| {
        std::fs::write(&path, format!("127.0.0.1:{}:postgres:alice:{password}\n", server.port)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        server.tcp(&format!("user=alice passfile='{}'", path.display()))
    };
    connected(&write("right", 0o600)).await;
    let stale = refused(&write("stale", 0o600)).await.to_string();
    assert!(stale.contains(&format!("(from {})", path.display())), "{stale}");
    let open = refused(&write("right", 0o644)).await.to_string();
    assert!(open.ends_with("was not used: other users can read it: chmod 600"), "{open}");
}

#[tokio::test]
async fn an_unknown_database_or_role_and_a_refused_host_are_reported() {
    let server = Server::start(&[]).await;
    let socket = server.socket_path();
    let database = refused(&server.local("postgres").with_dbname("nowhere")).await;
    assert_eq!(
        database.to_string(),
        format!(
            "{socket} has no database \"nowhere\": database \"nowhere\" does not exist (-d names another)"
        )
    );
    assert_eq!(database.sqlstate(), Some("3D000"));
    let role = refused(&server.local("nemo")).await;
    assert_eq!(
        role.to_string(),
        format!("{socket} does not know the role \"nemo\": role \"nemo\" does not exist (-U names another)")
    );
    let outsider = refused(&server.tcp("user=outsider sslmode=disable")).await;
    assert!(matches!(outsider.kind, ConnectErrorKind::NotAllowed(_)), "{outsider}");
    assert!(outsider.to_string().contains("no pg_hba.conf entry"), "{outsider}");
    assert_eq!(outsider.sqlstate(), Some("28000"));
}

#[tokio::test]
async fn options_application_name_and_database_reach_the_server() {
    let server = Server::start(&[]).await;
    let asked = server.socket("user=postgres options='-c geqo=off' application_name=watch");
    let connection = connected(&asked).await;
    assert_eq!(ask(&connection, "show geqo").await, "off");
    assert_eq!(ask(&connection, "show application_name").await, "watch");
    let renamed =
        connected(&server.local("postgres").with_application_name("other").with_dbname("template1")).await;
    assert_eq!(ask(&renamed, "show application_name").await, "other");
    assert_eq!(ask(&renamed, "select current_database()::text").await, "template1");
    let bad = refused(&server.socket("user=postgres options='-c nonsense=1'")).await;
    assert_eq!(bad.sqlstate(), Some("42704"), "{bad}");
}

#[tokio::test]
async fn sslmode_is_followed_with_a_self_signed_certificate() {
    let server = Server::start(&["ssl=on"]).await;
    for (mode, encrypted) in
        [("require", "true"), ("prefer", "true"), ("disable", "false"), ("allow", "false")]
    {
        let asked = server.tcp(&format!("user=alice password=right sslmode={mode}"));
        let (connection, place) = connect_somewhere(&asked).await.unwrap();
        assert_eq!(ask(&connection, IS_TLS).await, encrypted, "{mode}");
        assert_eq!(place.tls, (encrypted == "true").then_some("require"), "{mode}");
    }
    // As libpq: the other way if pg_hba.conf refuses this one.
    for (user, mode, encrypted) in [("only_plain", "prefer", "false"), ("only_tls", "allow", "true")] {
        let asked = server.tcp(&format!("user={user} password=right sslmode={mode}"));
        let (connection, place) = connect_somewhere(&asked).await.unwrap();
        assert_eq!(ask(&connection, IS_TLS).await, encrypted, "{user}");
        assert_eq!(place.tls, (encrypted == "true").then_some("require"), "{user}");
    }
    for (user, mode) in [("only_plain", "require"), ("only_tls", "disable"), ("outsider", "prefer")] {
        let error = refused(&server.tcp(&format!("user={user} password=right sslmode={mode}"))).await;
        assert!(matches!(error.kind, ConnectErrorKind::NotAllowed(_)), "{user}: {error}");
    }
    // The error of the other way is reported if it got further.
    assert_eq!(refused(&server.tcp("user=only_plain password=x")).await.sqlstate(), Some("28P01"));
    assert!(refused(&server.tcp("user=only_plain")).await.needs_password());
    // TLS is not used on a socket, whatever was requested.
    let local = connected(&server.socket("user=alice sslmode=require")).await;
    assert_eq!(ask(&local, IS_TLS).await, "false");

    connected(&server.tcp("user=alice password=right sslmode=require channel_binding=require")).await;
    let unbound =
        refused(&server.tcp("user=alice password=right sslmode=disable channel_binding=require")).await;
    assert!(matches!(unbound.kind, ConnectErrorKind::Authentication(_)), "{unbound}");
    let named = info(&format!(
        "host=no-such-host.invalid hostaddr=127.0.0.1 port={} dbname=postgres user=alice password=right sslmode=require",
        server.port
    ));
    assert_eq!(ask(&connected(&named).await, IS_TLS).await, "true");
    let numeric = info(&format!(
        "hostaddr=127.0.0.1 port={} dbname=postgres user=alice password=right sslmode=require",
        server.port
    ));
    assert_eq!(ask(&connected(&numeric).await, IS_TLS).await, "true");
}

#[tokio::test]
async fn tls_with_a_certificate_of_version_1() {
    for newest in ["TLSv1.2", "TLSv1.3"] {
        let version = format!("ssl_max_protocol_version={newest}");
        let server = Server::start(&["ssl=on", "ssl_cert_file=old.crt", &version]).await;
        let asked = server.tcp("user=alice password=right sslmode=require channel_binding=require");
        let used = "select version from pg_stat_ssl where pid = pg_backend_pid()";
        assert_eq!(ask(&connected(&asked).await, used).await, newest);
    }
}

#[tokio::test]
async fn a_query_can_be_cancelled_over_tls() {
    let server = Server::start(&["ssl=on"]).await;
    let connection = connected(&server.tcp("user=alice password=right sslmode=require")).await;
    let canceller = connection.canceller.clone();
    let admin = server.admin().await;
    let sleep = tokio::spawn(async move { connection.client.batch_execute("select pg_sleep(600)").await });
    let deadline = server::deadline(std::time::Duration::from_secs(20));
    let asleep = "select count(*)::text from pg_stat_activity where wait_event = 'PgSleep'";
    while ask(&admin, asleep).await != "1" {
        assert!(!server::passed(deadline), "it never slept");
    }
    canceller.cancel(std::time::Duration::from_secs(10)).await;
    let error = sleep.await.unwrap().unwrap_err();
    assert_eq!(error.code().unwrap().code(), "57014");
}

#[tokio::test]
async fn tls_from_a_server_without() {
    let server = Server::start(&[]).await;
    let error = refused(&server.tcp("user=alice password=right sslmode=require")).await;
    assert_eq!(
        error.to_string(),
        format!(
            "{} does not offer TLS, and sslmode=require needs it (sslmode=prefer connects without)",
            server.place()
        )
    );
    let connection = connected(&server.tcp("user=alice password=right sslmode=prefer")).await;
    assert_eq!(ask(&connection, IS_TLS).await, "false");
}

#[tokio::test]
async fn several_hosts() {
    let server = Server::start(&[]).await;
    let (down, up) = (free_port(), server.port);
    let list = |more: &str| {
        info(&format!("host=127.0.0.1,127.0.0.1 port={down},{up} dbname=postgres password=right {more}"))
    };
    connected(&list("user=alice")).await;
    // No host at all: no usual directory has this socket, so it is localhost.
    connected(&info(&format!("port={up} dbname=postgres user=alice password=right"))).await;
    // Any local user could listen there: methods that show the password are refused, unless the host was named.
    for (user, method) in [("clear", "password"), ("hashed", "md5")] {
        let unnamed = refused(&info(&format!("port={up} dbname=postgres user={user} password=right"))).await;
        assert!(
            matches!(&unnamed.kind, ConnectErrorKind::AuthNotAllowed { method: m, .. } if *m == method),
            "{unnamed}"
        );
        connected(&info(&format!("host=localhost port={up} dbname=postgres user={user} password=right")))
            .await;
    }
    let standby = refused(&list("user=alice target_session_attrs=read-only")).await.to_string();
    assert!(standby.contains(&format!("127.0.0.1:{down} refused")), "{standby}");
    assert!(standby.contains("does not match target_session_attrs"), "{standby}");
    let wrong =
        info(&format!("host=127.0.0.1,127.0.0.1 port={up},{down} dbname=postgres user=alice password=x"));
    assert_eq!(refused(&wrong).await.sqlstate(), Some("28P01"), "the role is refused once");
}

#[tokio::test]
async fn no_connection_left() {
    let server =
        Server::start(&["max_connections=5", "superuser_reserved_connections=2", "max_wal_senders=0"]).await;
    let crowd = server.tcp("user=crowd");
    let mut held = Vec::new();
    let error = loop {
        assert!(held.len() < 6, "the server takes too many");
        match connect(&crowd).await {
            Ok(connection) => held.push(connection),
            Err(error) => break error,
        }
    };
    assert!(error.is_waitable(), "{error}");
    assert_eq!(error.sqlstate(), Some("53300"));
    assert!(
        error.to_string().starts_with(&format!("{} has no free connection: ", server.place())),
        "{error}"
    );

    held.clear();
    let deadline = server::deadline(std::time::Duration::from_secs(20));
    while let Err(error) = connect(&crowd).await {
        assert!(error.is_waitable() && !server::passed(deadline), "{error}");
    }
}

#[tokio::test]
async fn shutting_down() {
    let server = Server::start(&[]).await;
    let last = server.admin().await;
    server.begin_smart_shutdown();
    let deadline = server::deadline(std::time::Duration::from_secs(20));
    let error = loop {
        assert!(!server::passed(deadline), "the server keeps accepting connections");
        if let Err(error) = connect(&server.local("postgres")).await {
            break error;
        }
    };
    assert!(error.is_waitable(), "{error}");
    assert_eq!(error.sqlstate(), Some("57P03"));
    drop(last);
}
