//! TLS by libpq's modes: with every kind of certificate and in every mode locktop comes to psql's verdict, and says which check failed.

mod authority;
mod client;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use locktop::pg::connect::connect;

use super::psql::psql;
use super::server::{Server, info};
use super::support;
use authority::{Authority, Wanted};

const MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// The host that is asked for; its address is given beside it.
const HOST: &str = "db.example.test";

/// A certificate of the server, and what is said of it where it is refused.
struct Case {
    name: &'static str,
    certificate: PathBuf,
    /// Of the authorities' files, those that it is tried with.
    roots: Vec<PathBuf>,
    /// The host.
    host: &'static str,
    /// What the error speaks of in `verify-ca` and in `verify-full`; none where it works.
    errors: [Option<&'static str>; 2],
}

fn certificates(ca: &Authority, other: &Authority) -> Vec<Case> {
    let good = format!("subjectAltName=DNS:{HOST}\n");
    let issue =
        |name, subject, extensions: &str| ca.issue("server", Wanted { name, subject, extensions, days: 30 });
    let between = ca.under("between");
    let beneath =
        between.issue("server", Wanted { name: "beneath", subject: "/CN=x", extensions: &good, days: 30 });
    let chain = ca.file("chain.crt");
    let both = [&beneath, &between.certificate()].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    std::fs::write(&chain, both).unwrap();
    let own = |name, extensions: &str| {
        let subject = format!("/CN={HOST}");
        ca.issue_by_itself("server", Wanted { name, subject: &subject, extensions, days: 30 })
    };
    let (itself, authority) =
        (own("itself", &good), own("authority", &format!("{good}basicConstraints=critical,CA:TRUE\n")));
    let old = ca.issue_by_itself(
        "root",
        Wanted {
            name: "expired-root",
            subject: "/O=test/CN=root",
            extensions: "basicConstraints=critical,CA:TRUE\n",
            days: -1,
        },
    );
    let root = ca.certificate();
    let both_roots = ca.file("both-roots.crt");
    let text = [&other.certificate(), &root].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    std::fs::write(&both_roots, text).unwrap();
    let case =
        |name, certificate, errors| Case { name, certificate, roots: vec![root.clone()], host: HOST, errors };
    let same = |error| [Some(error), Some(error)];
    let name = |error| [None, Some(error)];
    vec![
        case("good", issue("good", "/CN=x", &good), [None, None]),
        Case {
            roots: vec![both_roots],
            ..case("good, of two authorities", ca.file("good.crt"), [None, None])
        },
        case(
            "wrong name",
            issue("other-name", "/CN=x", "subjectAltName=DNS:other.example.test\n"),
            name("is for \"other.example.test\", and not for host \"db.example.test\""),
        ),
        case(
            "name in the subject",
            issue("common", &format!("/CN={HOST}"), "basicConstraints=CA:FALSE\n"),
            [None, None],
        ),
        case(
            "name in the subject, and another beside it",
            issue("common-other", &format!("/CN={HOST}"), "subjectAltName=DNS:other.example.test\n"),
            name("is for \"other.example.test\", and not"),
        ),
        case(
            "name in the subject, and an address beside it",
            issue("common-address", &format!("/CN={HOST}"), "subjectAltName=IP:127.0.0.1\n"),
            [None, None],
        ),
        case("wildcard", issue("wildcard", "/CN=x", "subjectAltName=DNS:*.example.test\n"), [None, None]),
        case(
            "wildcard too high",
            issue("wildcard-high", "/CN=x", "subjectAltName=DNS:*.test\n"),
            name("is for \"*.test\", and not"),
        ),
        case("capitals", issue("capitals", "/CN=x", "subjectAltName=DNS:DB.Example.TEST\n"), [None, None]),
        Case {
            host: "127.0.0.1",
            ..case("address", issue("address", "/CN=x", "subjectAltName=IP:127.0.0.1\n"), [None, None])
        },
        Case {
            host: "127.0.0.1",
            ..case(
                "wrong address",
                issue("other-address", "/CN=x", "subjectAltName=IP:127.0.0.2\n"),
                name("is for \"127.0.0.2\", and not"),
            )
        },
        Case {
            host: "127.0.0.1",
            ..case(
                "address as a name",
                issue("address-name", "/CN=x", "subjectAltName=DNS:127.0.0.1\n"),
                [None, None],
            )
        },
        Case {
            host: "127.0.0.1",
            ..case(
                "address in the subject",
                issue("address-common", "/CN=127.0.0.1", "basicConstraints=CA:FALSE\n"),
                [None, None],
            )
        },
        case(
            "wrong authority",
            other.issue("server", Wanted { name: "foreign", subject: "/CN=x", extensions: &good, days: 30 }),
            same("signed by \"CN=stranger,O=test\", which is not among those in"),
        ),
        case(
            "expired",
            ca.issue("server", Wanted { name: "expired", subject: "/CN=x", extensions: &good, days: -1 }),
            same("the server's certificate expired at 20"),
        ),
        case("signed by itself", itself.clone(), same("signed itself, and is not among those in")),
        Case { roots: vec![itself.clone()], ..case("signed by itself, and known", itself, [None, None]) },
        Case {
            roots: vec![authority.clone()],
            ..case("signed by itself as an authority, and known", authority.clone(), [None, None])
        },
        case("signed by itself as an authority", authority, same("signed itself, and is not among those in")),
        case("version 1", issue("old", &format!("/CN={HOST}"), ""), [None, None]),
        case("version 1, wrong name", issue("old-other", "/CN=x", ""), name("is for \"x\", and not")),
        case(
            "version 1, of another authority",
            other.issue("server", Wanted { name: "old-foreign", subject: "/CN=x", extensions: "", days: 30 }),
            same("signed by \"CN=stranger,O=test\", which is not among"),
        ),
        case(
            "version 1, expired",
            ca.issue("server", Wanted { name: "old-expired", subject: "/CN=x", extensions: "", days: -1 }),
            same("expired at 20"),
        ),
        case(
            "an authority's",
            issue("ca-leaf", "/CN=x", &format!("{good}basicConstraints=critical,CA:TRUE\n")),
            [None, None],
        ),
        case("over one in between", chain, [None, None]),
        case(
            "over one in between that is not shown",
            beneath,
            same("signed by \"CN=between,O=test\", which is not among"),
        ),
        case(
            "for clients",
            issue("clients", "/CN=x", &format!("{good}extendedKeyUsage=clientAuth\n")),
            same("made for another purpose"),
        ),
        Case {
            roots: vec![old],
            ..case(
                "authority expired",
                ca.file("good.crt"),
                same("the certificate of the authority \"CN=root,O=test\" in those in"),
            )
        },
        Case {
            roots: vec![ca.file("good.crt")],
            ..case("known, but not signed by itself", ca.file("good.crt"), same("which is not among"))
        },
        Case {
            roots: vec![ca.file("none.crt")],
            ..case("no authorities", ca.file("good.crt"), same("there is no file of authorities"))
        },
        Case {
            roots: vec![ca.file("server.key")],
            ..case("no certificate in the file", ca.file("good.crt"), same("has no certificate in PEM"))
        },
    ]
}

/// A session with TLS, one without, or none and why.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Verdict {
    Encrypted,
    Plain,
    No,
}

const FACTS: &str = "select ssl::text from pg_stat_ssl where pid = pg_backend_pid()";

async fn ours(target: &str) -> (Verdict, String) {
    match connect(&info(target)).await {
        Err(error) => (Verdict::No, error.to_string()),
        Ok(connection) => {
            let tls: String = connection.client.query_one(FACTS, &[]).await.unwrap().get(0);
            (if tls == "true" { Verdict::Encrypted } else { Verdict::Plain }, String::new())
        }
    }
}

fn theirs(target: &str, home: &Path) -> (Verdict, String) {
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
    // The postmaster loads it when it hears the signal; who connects then is a child of that.
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
    let cases = certificates(&ca, &other);
    let home = tempfile::tempdir().unwrap();
    let (mut wrong, mut cells, mut current) = (Vec::new(), 0, PathBuf::new());
    for case in &cases {
        if case.certificate != current {
            serve(&server, &case.certificate).await;
            current.clone_from(&case.certificate);
        }
        for mode in MODES {
            for root in case.roots.iter().map(Some).chain([None]) {
                let root_setting =
                    root.map(|root| format!(" sslrootcert={}", root.display())).unwrap_or_default();
                let target = format!(
                    "host={} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslmode={mode}{root_setting}",
                    case.host, server.port
                );
                let ((mine, said), (psql, theirs)) = (ours(&target).await, theirs(&target, home.path()));
                cells += 1;
                let expected = match (mode, root) {
                    ("verify-ca", Some(_)) => case.errors[0],
                    ("verify-full", Some(_)) => case.errors[1],
                    ("verify-ca" | "verify-full", None) => Some("there is no file of authorities"),
                    _ => None,
                };
                let named = mine != Verdict::No || expected.is_none_or(|words| said.contains(words));
                let worded = expected.is_some() == (mine == Verdict::No) || !mode.starts_with("verify");
                if mine != psql || !named || !worded {
                    wrong.push(format!(
                        "{}, {mode}, {root:?}\n    locktop: {mine:?} {said}\n    psql: {psql:?} {theirs}",
                        case.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells} cells differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells >= 300, "{cells} cells");
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
            let ((mine, said), (psql, theirs)) = (ours(&target).await, theirs(&target, home.path()));
            let expected = if revoked && counts { Verdict::No } else { Verdict::Encrypted };
            assert_eq!((mine, psql), (expected, expected), "{target}: {said} {theirs}");
            assert!(mine != Verdict::No || said.contains("it was revoked"), "{said}");
        }
    }
    // What libpq takes and webpki does not is refused, and never passed over.
    let old = ca.revoke_in_version_1(&[]);
    let target = format!(
        "host={HOST} hostaddr=127.0.0.1 port={} dbname=postgres user=crowd sslmode=verify-ca sslrootcert={} sslcrl={}",
        server.port,
        ca.certificate().display(),
        old.display()
    );
    let (mine, said) = ours(&target).await;
    assert!(mine == Verdict::No && said.contains("has to be of version 2"), "{said}");
}
