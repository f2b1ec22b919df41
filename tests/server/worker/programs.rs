//! Tasks that are programs, requests and notifications.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::Signal;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::binary::locktop;
use super::db::{Session, installed};
use super::hand::{ended, log, task};
use super::process::{Process, target};
use super::queue::item;
use super::support::{server, wait_until};

const ALLOWED: [&str; 4] = ["--allow-commands", "--allow-http", "--concurrency", "8"];

/// A payload that runs a script of a shell.
fn script(text: &str) -> String {
    format!("'{}'", serde_json::json!({"argv": ["sh", "-c", text]}).to_string().replace('\'', "''"))
}

#[tokio::test]
async fn each_type_does_what_its_payload_says() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for status in ["200 OK", "503 Service Unavailable"] {
            let (mut client, _) = listener.accept().await.unwrap();
            let _ = client.read(&mut [0; 4096]).await.unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 3\r\n\r\nwhy");
            client.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let mut heard = locktop::pg::connect::listen(&info).await.unwrap();
    heard.client.batch_execute("LISTEN jobs").await.unwrap();
    session.run("ALTER TABLE scheduled_tasks ALTER max_attempts SET DEFAULT 1").await;
    let worker = Process::start("w", &ALLOWED, &target(version, &info).await);
    worker.says("connected").await;
    let get = format!("'{}'", serde_json::json!({"url": url}));
    for (kind, payload, outcome) in [
        ("command", &*script("echo done; exit 0"), "w|completed|-"),
        ("command", &*script("echo one; echo two; exit 3"), "w|failed|exit status 3: one\ntwo"),
        ("http", &*get, "w|completed|-"),
        ("http", &*get, "w|failed|the server answered 503 Service Unavailable: why"),
        ("notify", "'{\"channel\": \"jobs\", \"payload\": {\"n\": 1}}'", "w|completed|-"),
    ] {
        let before = session.ask("SELECT count(*) FROM task_execution_log").await.parse::<usize>().unwrap();
        task(&session, &format!("t{before}"), kind, payload).await;
        ended(&session, before + 1).await;
        assert!(log(&session).await.ends_with(outcome), "{kind} {payload}: {}", log(&session).await);
    }
    worker.says("\"t0\" (execution 1) said: done").await;
    worker.says("\"t2\" (execution 3) said: 200 OK: why").await;
    let told = heard.notifications.recv().await;
    assert!(format!("{told:?}").contains("{\\\"n\\\":1}"), "{told:?}");
    item(&session, "command", &script("exit 1")).await;
    worker.says("failed \"command\" (item 1) after").await;
}

/// A program that says where it is, and does not end; its process id.
async fn runs(session: &Session, directory: &Path) -> u32 {
    let file = directory.join("pid");
    let text = format!("trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display());
    task(session, "long", "command", &script(&text)).await;
    let mut pid = None;
    wait_until("the program to run", async || {
        pid = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    })
    .await;
    pid.unwrap()
}

/// Whether a process is there, and no zombie that nobody has waited for.
fn is_running(pid: u32) -> bool {
    let state =
        std::process::Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// It is told to stop with its lock, and is killed when it does not; and it does not outlive its worker, however that ends.
#[tokio::test]
async fn a_program_ends_with_the_lock_and_with_the_worker() {
    let version = server().await.version();
    for ends in ["the session", "SIGKILL", "a shut-down"] {
        let info = installed(version).await;
        let session = Session::open(&info).await;
        let directory = tempfile::tempdir().unwrap();
        let options = ["--allow-commands", "--grace", "0s"];
        let worker = Process::start("w", &options, &target(version, &info).await);
        let pid = runs(&session, directory.path()).await;
        assert!(is_running(pid));
        // It is not begun again by the same worker.
        session.run("UPDATE scheduled_tasks SET is_enabled = false").await;
        match ends {
            "the session" => {
                session.run("SELECT pg_terminate_backend(holder_pid) FROM running_tasks").await;
            }
            "SIGKILL" => worker.signal(Signal::KILL),
            _ => worker.signal(Signal::TERM),
        }
        wait_until(&format!("its end with {ends}"), async || !is_running(pid)).await;
        if ends == "a shut-down" {
            let left = worker.ended().await;
            assert_eq!(left.status, Some(0), "{}", left.err);
            assert!(left.err.contains("gave back \"long\""), "{}", left.err);
        }
    }
}

/// A certificate for 127.0.0.1 that nobody has signed but itself, and its key.
fn certificate(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=hook \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let mut command = std::process::Command::new("openssl");
    command.args(line.split_whitespace()).arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    let output = command.output().unwrap_or_else(|error| panic!("openssl: {error}: is it installed?"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (certificate, key)
}

/// A server with that certificate, which answers each request; its URL.
async fn encrypted(certificate: &Path, key: &Path) -> String {
    let certificates = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(certificates, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(mut client) = acceptor.accept(client).await else { continue };
            let _ = client.read(&mut [0; 4096]).await.unwrap();
            client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn who_answers_has_to_be_who_was_asked() {
    let version = server().await.version();
    let info = installed(version).await;
    let session = Session::open(&info).await;
    session.run("ALTER TABLE scheduled_tasks ALTER max_attempts SET DEFAULT 1").await;
    let directory = tempfile::tempdir().unwrap();
    let (trusted, key) = certificate(directory.path(), "trusted");
    let (other, _) = certificate(directory.path(), "other");
    let url = encrypted(&trusted, &key).await;
    let get = |url: &str| format!("'{}'", serde_json::json!({"url": url}));
    let place = target(version, &info).await;
    let mut outcomes = Vec::new();
    for (name, file, url) in [
        ("one", &trusted, url.clone()),
        ("two", &other, url.clone()),
        ("three", &trusted, url.replace("127.0.0.1", "localhost")),
    ] {
        let mut command = locktop(&["-w", "worker", "--id", name, "--allow-http", &place]);
        command.env("SSL_CERT_FILE", file).env_remove("SSL_CERT_DIR");
        let worker = Process::of(command);
        worker.says("connected").await;
        task(&session, name, "http", &get(&url)).await;
        outcomes.push(name);
        ended(&session, outcomes.len()).await;
        worker.signal(Signal::TERM);
        assert_eq!(worker.ended().await.status, Some(0));
    }
    let log = log(&session).await;
    let log: Vec<_> = log.lines().collect();
    assert_eq!(log[0], "one|completed|-");
    assert!(log[1].starts_with("two|failed|no TLS to 127.0.0.1: invalid peer certificate"), "{log:?}");
    assert!(log[2].starts_with("three|failed|no TLS to localhost: invalid peer certificate"), "{log:?}");
}
