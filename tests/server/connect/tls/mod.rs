//! TLS in libpq's modes: with every kind of certificate and in every mode locktop reaches psql's verdict, and
//! reports which check failed.

mod authority;
mod cases;
mod client;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use locktop::pg::connect::connect;

use super::super::binary::{locktop, run_beside};
use super::psql::psql;
use super::server::{Server, info};
use super::support;
use authority::{Authority, Wanted};

const MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// The host of the connection string; its address is given separately.
const HOST: &str = "db.example.test";

/// A session with TLS, one without, or none and why.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Verdict {
    Encrypted,
    Plain,
    No,
}

const FACTS: &str = "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()";

async fn locktop_verdict(target: &str) -> (Verdict, String) {
    match connect(&info(target)).await {
        Err(error) => (Verdict::No, error.to_string()),
        Ok(connection) => {
            let tls: String = connection.client.query_one(FACTS, &[]).await.unwrap().get(0);
            (if tls == "true" { Verdict::Encrypted } else { Verdict::Plain }, String::new())
        }
    }
}

fn psql_verdict(target: &str, home: &Path) -> (Verdict, String) {
    let output = psql()
        .args(["-X", "-A", "-t", "-q", "-w", "-c", FACTS, target])
        .env_clear()
        .env("HOME", home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " / ");
    match (output.status.success(), String::from_utf8_lossy(&output.stdout).trim()) {
        (true, "true") => (Verdict::Encrypted, error),
        (true, _) => (Verdict::Plain, error),
        (false, _) => (Verdict::No, error),
    }
}

/// Lets the server use this certificate from now on.
async fn serve(server: &Server, certificate: &Path) {
    let admin = server.admin().await;
    let shown = certificate.display();
    admin.client.batch_execute(&format!("alter system set ssl_cert_file = '{shown}'")).await.unwrap();
    admin.client.batch_execute("select pg_reload_conf()").await.unwrap();
    // The postmaster loads it when it receives the signal; the backends of later connections inherit it.
    support::wait_until("the server to use the certificate", async || {
        let connection = server.admin().await;
        let row = connection.client.query_one("show ssl_cert_file", &[]).await.unwrap();
        row.get::<_, String>(0) == shown.to_string()
    })
    .await;
}

#[tokio::test]
async fn every_certificate_in_every_mode_as_in_psql() {
    let server = Server::start(&["ssl=on"]).await;
    let directory = server.socket_directory();
    let ca = Authority::new(directory, "root");
    let other = Authority::new(directory, "stranger");
    std::fs::copy(directory.join("data/server.key"), ca.file("server.key")).unwrap();
    let cases = cases::all(&ca, &other);
    let home = tempfile::tempdir().unwrap();
    let (mut wrong, mut cells, mut current) = (Vec::new(), 0, PathBuf::new());
    for case in &cases {
        if case.certificate != current {
            serve(&server, &case.certificate).await;
            current.clone_from(&case.certificate);
        }
        for mode in MODES {
            for root in [Some(&case.root), None] {
                let root_setting =
                    root.map(|root| format!(" sslrootcert={}", root.display())).unwrap_or_default();
                let target = format!(
                    "host={} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslmode={mode}{root_setting}",
                    case.host, server.port
                );
                let ((verdict, error), (psql, psql_error)) =
                    (locktop_verdict(&target).await, psql_verdict(&target, home.path()));
                cells += 1;
                let expected = match (mode, root) {
                    ("verify-ca", Some(_)) => case.errors[0],
                    ("verify-full", Some(_)) => case.errors[1],
                    ("verify-ca" | "verify-full", None) => Some("the file of authorities"),
                    _ => None,
                };
                let named = verdict != Verdict::No || expected.is_none_or(|words| error.contains(words));
                let worded = expected.is_some() == (verdict == Verdict::No) || !mode.starts_with("verify");
                if verdict != psql || !named || !worded {
                    wrong.push(format!(
                        "{}, {mode}, {root:?}\n    locktop: {verdict:?} {error}\n    psql: {psql:?} {psql_error}",
                        case.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells} cells differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells == cases.len() * 12 && cells >= 500, "{cells} cells");
}

#[tokio::test]
async fn a_revoked_certificate() {
    let server = Server::start(&["ssl=on"]).await;
    let directory = server.socket_directory();
    let ca = Authority::new(directory, "root");
    std::fs::copy(directory.join("data/server.key"), ca.file("server.key")).unwrap();
    let extensions = format!("subjectAltName=DNS:{HOST}\n");
    let wanted = Wanted { name: "good", subject: "/CN=x", extensions: &extensions, days: 30 };
    let good = ca.issue("server", wanted);
    let bad = ca.issue("server", Wanted { name: "bad", ..wanted });
    let list = ca.revoke(std::slice::from_ref(&bad));
    let lists = tempfile::tempdir().unwrap();
    let hash =
        super::server::run(Command::new("openssl").args(["crl", "-noout", "-hash", "-in"]).arg(&list)).stdout;
    let hashed = format!("{}.r0", String::from_utf8(hash).unwrap().trim());
    std::fs::copy(&list, lists.path().join(hashed)).unwrap();
    let home = tempfile::tempdir().unwrap();
    for (certificate, revoked) in [(&good, false), (&bad, true)] {
        serve(&server, certificate).await;
        for (setting, counts) in [
            (format!("sslcrl={}", list.display()), true),
            (format!("sslcrldir={}", lists.path().display()), true),
            (format!("sslcrl={}/none", directory.display()), false),
        ] {
            let target = format!(
                "host={HOST} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslmode=verify-full sslrootcert={} {setting}",
                server.port,
                ca.certificate().display()
            );
            let ((verdict, error), (psql, psql_error)) =
                (locktop_verdict(&target).await, psql_verdict(&target, home.path()));
            let expected = if revoked && counts { Verdict::No } else { Verdict::Encrypted };
            assert_eq!((verdict, psql), (expected, expected), "{target}: {error} {psql_error}");
            assert!(verdict != Verdict::No || error.contains("it was revoked"), "{error}");
        }
    }
    let empty = tempfile::tempdir().unwrap();
    let expired = ca.revoke_until_yesterday();
    for (setting, words) in [
        (format!("sslcrldir={}", empty.path().display()), "has no list of revoked certificates"),
        (format!("sslcrldir={}/none", empty.path().display()), "cannot read"),
        (format!("sslcrl={}", expired.display()), "is out of date"),
    ] {
        let target = format!(
            "host={HOST} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslmode=verify-ca sslrootcert={} {setting}",
            server.port,
            ca.certificate().display()
        );
        let ((verdict, error), (psql, psql_error)) =
            (locktop_verdict(&target).await, psql_verdict(&target, home.path()));
        assert_eq!((verdict, psql), (Verdict::No, Verdict::No), "{target}: {error} {psql_error}");
        assert!(error.contains(words), "{error}");
    }
    // A revocation list that libpq accepts and webpki does not is refused, never ignored.
    let old = ca.revoke_in_version_1(&[]);
    let target = format!(
        "host={HOST} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslmode=verify-ca sslrootcert={} sslcrl={}",
        server.port,
        ca.certificate().display(),
        old.display()
    );
    let (verdict, error) = locktop_verdict(&target).await;
    assert!(verdict == Verdict::No && error.contains("must have version 2"), "{error}");
}

/// OpenSSL's variable names the system's authorities, for both programs.
#[tokio::test]
async fn the_authorities_of_the_system() {
    let server = Server::start(&["ssl=on"]).await;
    let directory = server.socket_directory();
    let (ca, other) = (Authority::new(directory, "root"), Authority::new(directory, "stranger"));
    std::fs::copy(directory.join("data/server.key"), ca.file("server.key")).unwrap();
    let extensions = "subjectAltName=DNS:localhost\n";
    serve(&server, &ca.issue("server", Wanted { name: "good", subject: "/CN=x", extensions, days: 30 }))
        .await;
    let target = |host: &str, mode: &str| {
        format!(
            "host={host} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslrootcert=system {mode}",
            server.port
        )
    };
    for (host, mode, authority, words) in [
        ("localhost", "", &ca, None),
        ("localhost", "sslmode=verify-full", &ca, None),
        ("elsewhere", "", &ca, Some("is for \"localhost\", and not for host \"elsewhere\"")),
        ("localhost", "", &other, Some("which is not among the authorities of this system")),
        ("localhost", "sslmode=verify-ca", &ca, Some("expected verify-full, with sslrootcert=system")),
    ] {
        let mut command = locktop(&["-w", "snapshot", "--format", "json", &target(host, mode)]);
        command.env("SSL_CERT_FILE", authority.certificate());
        let left = run_beside(command).await;
        assert_eq!(left.status == Some(0), words.is_none(), "{host} {mode}: {}", left.err);
        assert!(words.is_none_or(|words| left.err.contains(words)), "{}", left.err);
    }
}
