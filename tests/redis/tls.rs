//! Redis over TLS, with certificates made for the test: which are trusted, which are not, and what is reported then.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use locktop::demo::redis::RedisServer;
use locktop::locks::Error;
use locktop::locks::redis_lock::{LockOptions, RedisLocks, Restarts};
use locktop::model::redis_lease::RedisLeases;
use locktop::redis::{Connection, RedisFault, RedisOptions, RedisUrl, TlsProblem, read_once};
use serde_json::Value;
use tempfile::TempDir;

use crate::binary::{locktop, run_beside};
use crate::support::{database, server as postgres};
use crate::{bytes, open, run, url};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Two authorities, and the certificates that the first has signed: `server` for 127.0.0.1, `client`.
struct Papers(TempDir);

impl Papers {
    fn new() -> Self {
        let papers = Self(tempfile::tempdir().unwrap());
        for authority in ["ca", "other-ca"] {
            papers.authority(authority);
        }
        papers.signed("server", "subjectAltName=IP:127.0.0.1");
        papers.signed("client", "subjectAltName=DNS:client.test");
        papers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn key(&self, name: &str) {
        let file = self.path(&format!("{name}.key"));
        openssl(
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out"],
            &[&file],
        );
    }

    fn authority(&self, name: &str) {
        self.key(name);
        let (key, certificate) = (self.path(&format!("{name}.key")), self.path(&format!("{name}.pem")));
        let subject = format!("/CN={name}");
        let head = ["req", "-new", "-x509", "-days", "2", "-subj", &subject, "-key"];
        openssl(&head, &[&key, Path::new("-out"), &certificate]);
    }

    fn signed(&self, name: &str, extension: &str) {
        self.key(name);
        let (key, request) = (self.path(&format!("{name}.key")), self.path(&format!("{name}.csr")));
        let subject = format!("/CN={name}");
        openssl(&["req", "-new", "-subj", &subject, "-key"], &[&key, Path::new("-out"), &request]);
        let extensions = self.path(&format!("{name}.ext"));
        std::fs::write(&extensions, extension).unwrap();
        let (ca, ca_key, certificate) =
            (self.path("ca.pem"), self.path("ca.key"), self.path(&format!("{name}.pem")));
        let option = Path::new;
        openssl(
            &["x509", "-req", "-days", "2", "-CAcreateserial", "-in"],
            &[&request, option("-CA"), &ca, option("-CAkey"), &ca_key]
                .into_iter()
                .chain([option("-extfile"), &extensions, option("-out"), &certificate])
                .collect::<Vec<_>>(),
        );
    }

    /// A server with a port for TLS, which asks its clients for a certificate or does not.
    async fn server(&self, ask_clients: bool) -> (RedisServer, u16) {
        let files = ["server.pem", "server.key", "ca.pem"].map(|name| self.text(name));
        for attempt in 0.. {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let number = port.to_string();
            let settings = [
                ["--tls-port", &number],
                ["--tls-cert-file", &files[0]],
                ["--tls-key-file", &files[1]],
                ["--tls-ca-cert-file", &files[2]],
                ["--tls-auth-clients", if ask_clients { "yes" } else { "no" }],
            ];
            match RedisServer::start(&settings.concat()).await {
                Ok(server) => return (server, port),
                // Another process took the port in between.
                Err(error) => assert!(attempt < 5, "{error}"),
            }
        }
        unreachable!()
    }

    /// A URL that trusts one of the authorities.
    fn trusting(&self, authority: &str, port: u16) -> String {
        format!("rediss://127.0.0.1:{port}?ssl_ca_certs={}", self.text(&format!("{authority}.pem")))
    }
}

fn openssl(arguments: &[&str], files: &[&Path]) {
    let output = Command::new("openssl").args(arguments).args(files).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("openssl: {error}: is it installed?"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn read(url: &str) -> RedisLeases {
    let options = RedisOptions { timeout: TIMEOUT, ..RedisOptions::default() };
    let state = read_once(vec![RedisUrl::parse(url).unwrap()], options).await;
    (*state.leases).clone()
}

fn locks(url: &str) -> RedisLocks {
    let options = LockOptions::term(Duration::from_secs(60)).timeout(TIMEOUT).restarts(Restarts::Trusted);
    RedisLocks::connect(&[url], options).unwrap()
}

/// Why no connection: one line that names the server.
async fn refused(url: &str) -> TlsProblem {
    let url = RedisUrl::parse(url).unwrap();
    let fault = Connection::open(&url, TIMEOUT).await.unwrap_err();
    let line = fault.to_string();
    assert!(line.starts_with(&format!("{url}: ")) && !line.contains('\n'), "{line}");
    match fault {
        RedisFault::Tls { trouble, .. } => trouble,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_lock_is_taken_and_seen_over_tls() {
    let papers = Papers::new();
    let (_server, port) = papers.server(false).await;
    let trusting = papers.trusting("ca", port);
    let guard = locks(&trusting).try_acquire("lock:report").await.unwrap().unwrap();
    let leases = read(&trusting).await;
    assert_eq!(leases.down(), 0, "{:?}", leases.servers);
    assert_eq!(leases.rows.len(), 1);
    assert_eq!(&*leases.rows[0].holder.shown(), guard.value());
    assert_eq!(&*leases.servers[0].server, &*format!("127.0.0.1:{port}"));
    assert!(guard.release().await.was_held());
    assert_eq!(read(&trusting).await.rows, []);
}

#[tokio::test]
async fn an_authority_that_is_not_trusted_is_refused_with_the_remedy() {
    let papers = Papers::new();
    let (server, port) = papers.server(false).await;
    // With another authority, and with those of the system.
    for url in [papers.trusting("other-ca", port), format!("rediss://127.0.0.1:{port}")] {
        let leases = read(&url).await;
        let error = leases.servers[0].error.as_deref().unwrap();
        let begins = format!("127.0.0.1:{port}: its certificate is not trusted (");
        assert!(error.starts_with(&begins) && !error.contains('\n'), "{error}");
        assert!(error.contains("?ssl_ca_certs=FILE") && error.contains("SSL_CERT_FILE"), "{error}");
        let refusal = locks(&url).try_acquire("lock:report").await.unwrap_err();
        let Error::NoQuorum { faults, .. } = &refusal else { panic!("{refusal}") };
        assert!(faults[0].starts_with(&begins), "{refusal}");
    }
    assert_eq!(run(&open(&server).await, "DBSIZE").await.as_number(), Some(0));
    // Only an explicit option accepts any certificate.
    let anyone = format!("rediss://127.0.0.1:{port}#insecure");
    let guard = locks(&anyone).try_acquire("lock:report").await.unwrap().unwrap();
    assert_eq!(read(&anyone).await.rows.len(), 1);
    guard.release().await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let papers = Papers::new();
    let (_server, port) = papers.server(false).await;
    let other = papers.trusting("ca", port).replace("127.0.0.1", "localhost");
    let trouble = refused(&other).await;
    assert!(matches!(&trouble, TlsProblem::OtherName(names) if names.contains("127.0.0.1")), "{trouble}");
}

#[tokio::test]
async fn a_server_that_asks_for_our_certificate_gets_it() {
    let papers = Papers::new();
    let (_server, port) = papers.server(true).await;
    let trusting = papers.trusting("ca", port);
    assert_eq!(refused(&trusting).await, TlsProblem::WhoAreYou);
    let identity = |certificate: &str| {
        let [certificate, key] = ["pem", "key"].map(|end| papers.text(&format!("{certificate}.{end}")));
        format!("{trusting}&ssl_certfile={certificate}&ssl_keyfile={key}")
    };
    assert_eq!(refused(&identity("other-ca")).await, TlsProblem::WhoAreYou);
    let connection = Connection::open(&RedisUrl::parse(&identity("client")).unwrap(), TIMEOUT).await.unwrap();
    assert_eq!(run(&connection, "PING").await, bytes("PONG"));
}

#[tokio::test]
async fn a_tls_mismatch_of_url_and_port_is_reported() {
    let papers = Papers::new();
    let (_server, tls) = papers.server(false).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap().port();
    let redis = crate::server().await;
    let socket = redis.socket();
    // A port without TLS is the socket of a server that has none.
    tokio::spawn(async move {
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            let mut to = tokio::net::UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
        }
    });
    let open = async |url: &str| Connection::open(&RedisUrl::parse(url).unwrap(), TIMEOUT).await;
    assert!(open(&format!("redis://127.0.0.1:{plain}")).await.is_ok());
    // Redis takes the beginning of TLS for an incomplete command.
    let wrong = RedisUrl::parse(&format!("rediss://127.0.0.1:{plain}#insecure")).unwrap();
    let silent = Connection::open(&wrong, Duration::from_millis(500)).await.unwrap_err().to_string();
    assert!(
        silent.contains("no answer within 500 ms; a port without TLS does not answer either"),
        "{silent}"
    );
    let error = open(&format!("redis://127.0.0.1:{tls}")).await.unwrap_err().to_string();
    assert!(error.contains("rediss://"), "{error}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = open(&format!("redis://127.0.0.1:{closed}")).await.unwrap_err().to_string();
    assert!(error.contains("refused") && !error.contains("rediss://"), "{error}");
}

#[tokio::test]
async fn a_plain_answer_is_reported_as_no_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, b"-ERR who are you\r\n").await;
        }
    });
    assert_eq!(refused(&format!("rediss://127.0.0.1:{port}")).await, TlsProblem::NoTls);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let papers = Papers::new();
    let (_server, port) = papers.server(false).await;
    let files = |parameters: &str| format!("rediss://127.0.0.1:{port}?{parameters}");
    let missing = refused(&files("ssl_ca_certs=/nonexistent/ca.pem")).await.to_string();
    assert!(missing.starts_with("cannot read /nonexistent/ca.pem: No such file"), "{missing}");
    let key = papers.text("ca.key");
    let none = refused(&files(&format!("ssl_ca_certs={key}"))).await.to_string();
    assert!(none.starts_with(&format!("{key} has no certificate in PEM")), "{none}");
    let broken = papers.path("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    for parameters in [
        format!("ssl_ca_certs={}", broken.display()),
        format!("ssl_certfile={0}&ssl_keyfile={0}", broken.display()),
    ] {
        let trouble = refused(&files(&parameters)).await;
        assert!(matches!(trouble, TlsProblem::Files(_)), "{parameters}: {trouble}");
    }
}

/// Uses an authority of the system in place of all others.
#[tokio::test]
async fn the_program_trusts_the_authorities_of_the_system() {
    let papers = Papers::new();
    let (server, port) = papers.server(false).await;
    run(&open(&server).await, "SET lock:a worker-1 PX 60000").await;
    let info = database(postgres().await).await;
    for (authority, locks) in [("ca", 1), ("other-ca", 0)] {
        let target = format!("rediss://127.0.0.1:{port}");
        let mut command = locktop(&["snapshot", "--format", "json", "--redis", &target]);
        let socket = postgres().await.socket_dir();
        command.env("PGHOST", socket).env("PGUSER", "postgres").env("PGDATABASE", info.dbname());
        command.env("SSL_CERT_FILE", papers.path(&format!("{authority}.pem"))).env_remove("SSL_CERT_DIR");
        let left = run_beside(command).await;
        assert_eq!(left.status, Some(0), "{}", left.err);
        let snapshot: Value = serde_json::from_str(&left.out).unwrap();
        assert_eq!(snapshot["leases"].as_array().unwrap().len(), locks, "{}", left.out);
        let error = snapshot["sections"]["redis"]["error"].as_str();
        assert_eq!(error.is_some_and(|error| error.contains("its certificate is not trusted")), locks == 0);
    }
    assert!(url(&server).to_string().ends_with("redis.sock"));
}
