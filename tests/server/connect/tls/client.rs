//! Client certificates, for servers that request one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(feature = "encrypted-keys")]
use locktop::pg::conninfo::Secret;

use super::super::super::dashboard::Dashboard;
use super::super::server::{Server, info, run};
use super::super::{connected, refused};
use super::authority::{Authority, Wanted};
use super::{HOST, Verdict, locktop_verdict, psql_verdict};

/// A server that lets `certified` in by certificate alone, and the files to try.
struct Stage {
    server: Server,
    ca: Authority,
    home: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let files = tempfile::tempdir().unwrap().keep();
        std::fs::set_permissions(&files, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ca = Authority::new(&files, "root");
        let setting = format!("ssl_ca_file={}", ca.certificate().display());
        let server = Server::start(&["ssl=on", &setting]).await;
        let admin = server.admin().await;
        for statement in ["create role certified login", "create role twice login password 'right'"] {
            admin.client.batch_execute(statement).await.unwrap();
        }
        Self { server, ca, home: tempfile::tempdir().unwrap() }
    }

    fn issue(&self, name: &'static str, subject: &str) -> PathBuf {
        self.ca.key(name);
        self.ca.issue(name, Wanted { name, subject, extensions: "basicConstraints=CA:FALSE\n", days: 30 })
    }

    fn target(&self, more: &str) -> String {
        format!("host={HOST} hostaddr=127.0.0.1 port={} dbname=postgres {more}", self.server.port)
    }

    /// Asserts that both programs reach this verdict; returns the error of locktop.
    async fn verdict(&self, more: &str, expected: Verdict) -> String {
        let target = self.target(more);
        let ((verdict, error), (psql, psql_error)) =
            (locktop_verdict(&target).await, psql_verdict(&target, self.home.path()));
        assert_eq!(
            (verdict, psql),
            (expected, expected),
            "{target}\n    locktop: {error}\n    psql: {psql_error}"
        );
        error
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.ca.file(""));
    }
}

fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}

#[tokio::test]
async fn a_server_that_wants_a_certificate() {
    let stage = Stage::new().await;
    let good = stage.issue("certified", "/CN=certified");
    let other = stage.issue("somebody", "/CN=somebody");
    let stranger = Authority::new(&stage.ca.file(""), "stranger");
    stranger.key("foreign");
    let foreign = stranger.issue(
        "foreign",
        Wanted {
            name: "foreign",
            subject: "/CN=certified",
            extensions: "basicConstraints=CA:FALSE\n",
            days: 30,
        },
    );
    let with = |certificate: &Path, key: &str| {
        format!(
            "user=certified sslmode=require sslcert={} sslkey={}",
            shown(certificate),
            shown(&stage.ca.file(key))
        )
    };
    stage.verdict(&with(&good, "certified.key"), Verdict::Encrypted).await;
    // In every mode that uses TLS.
    for (mode, verdict) in
        [("disable", Verdict::No), ("allow", Verdict::Encrypted), ("prefer", Verdict::Encrypted)]
    {
        let asked = with(&good, "certified.key").replace("sslmode=require", &format!("sslmode={mode}"));
        stage.verdict(&asked, verdict).await;
    }
    let error = stage.verdict("user=certified sslmode=require", Verdict::No).await;
    assert!(error.contains("certificate"), "{error}");
    let error = stage.verdict(&with(&other, "somebody.key"), Verdict::No).await;
    assert!(error.contains("certified"), "{error}");
    let error = stage.verdict(&with(&foreign, "foreign.key"), Verdict::No).await;
    assert!(error.contains("does not accept the client certificate"), "{error}");
    let error = stage.verdict(&with(&good, "somebody.key"), Verdict::No).await;
    assert!(error.contains("is not the key of"), "{error}");
    let error = stage.verdict(&with(&good, "none.key"), Verdict::No).await;
    assert!(error.contains("but not its key"), "{error}");
    let error = stage.verdict(&with(&stage.ca.file("certified.key"), "certified.key"), Verdict::No).await;
    assert!(error.contains("has no certificate in PEM"), "{error}");
    // A missing file is no certificate.
    stage.verdict(&with(&stage.ca.file("none.crt"), "none.key"), Verdict::No).await;
    // Together with a password.
    let both = |password| {
        format!(
            "user=twice password={password} sslmode=require sslcert={} sslkey={}",
            shown(&good),
            shown(&stage.ca.file("certified.key"))
        )
    };
    stage.verdict(&both("right"), Verdict::Encrypted).await;
    stage.verdict(&both("wrong"), Verdict::No).await;
    stage.verdict("user=twice password=right sslmode=require", Verdict::No).await;
    // A certificate may also be sent if pg_hba.conf requires none; `sslcertmode` can require or disable it.
    let crowd = format!(
        "user=crowd sslmode=require sslcert={} sslkey={}",
        shown(&good),
        shown(&stage.ca.file("certified.key"))
    );
    stage.verdict(&crowd, Verdict::Encrypted).await;
    connected(&info(&stage.target(&format!("{crowd} sslcertmode=require")))).await;
    let hidden =
        refused(&info(&stage.target(&format!("{} sslcertmode=disable", with(&good, "certified.key"))))).await;
    assert!(hidden.to_string().contains("certificate"), "{hidden}");

    // From the home directory.
    let own = stage.home.path().join(".postgresql");
    std::fs::create_dir(&own).unwrap();
    for (from, to) in
        [("certified.crt", "postgresql.crt"), ("certified.key", "postgresql.key"), ("root.crt", "root.crt")]
    {
        std::fs::copy(stage.ca.file(from), own.join(to)).unwrap();
    }
    std::fs::set_permissions(own.join("postgresql.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let target = stage.target("user=certified sslmode=require");
    // No authority in the file has signed the server's certificate, and the file counts in this mode too.
    assert_eq!(psql_verdict(&target, stage.home.path()).0, Verdict::No);
    let sources = locktop::pg::conninfo::Sources {
        env: &|_| None,
        home: Some(stage.home.path().to_owned()),
        ..locktop::pg::conninfo::Sources::of_process(Some(&target), locktop::pg::conninfo::Flags::default())
    };
    let resolve = || locktop::pg::conninfo::ConnInfo::resolve(&sources).unwrap();
    assert!(refused(&resolve()).await.to_string().contains("is self-signed"), "by the file of authorities");
    std::fs::remove_file(own.join("root.crt")).unwrap();
    assert_eq!(psql_verdict(&target, stage.home.path()).0, Verdict::Encrypted);
    connected(&resolve()).await;
}

#[cfg(feature = "encrypted-keys")]
#[tokio::test]
async fn keys_that_others_may_read_and_keys_that_are_encrypted() {
    let stage = Stage::new().await;
    let certificate = stage.issue("certified", "/CN=certified");
    let key = stage.ca.file("certified.key");
    let with = |key: &Path, more: &str| {
        format!("user=certified sslmode=require sslcert={} sslkey={} {more}", shown(&certificate), shown(key))
    };
    let mode =
        |file: &Path, mode| std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&key, 0o644);
    let error = stage.verdict(&with(&key, ""), Verdict::No).await;
    assert!(error.contains("can be read by other users: chmod 600"), "{error}");
    mode(&key, 0o600);

    let locked = |name: &str, arguments: &[&str]| {
        let file = stage.ca.file(name);
        run(Command::new("openssl").args(arguments).arg("-in").arg(&key).arg("-out").arg(&file));
        mode(&file, 0o600);
        file
    };
    let encrypted = locked("locked.key", &["pkcs8", "-topk8", "-passout", "pass:open sesame"]);
    stage.verdict(&with(&encrypted, "sslpassword='open sesame'"), Verdict::Encrypted).await;
    let error = stage.verdict(&with(&encrypted, "sslpassword=wrong"), Verdict::No).await;
    assert!(error.contains("the password does not decrypt the key"), "{error}");
    let scrypt = locked("scrypt.key", &["pkcs8", "-topk8", "-scrypt", "-passout", "pass:open sesame"]);
    stage.verdict(&with(&scrypt, "sslpassword='open sesame'"), Verdict::Encrypted).await;
    // As `openssl req` makes it.
    let des3 = locked("des3.key", &["pkcs8", "-topk8", "-v2", "des3", "-passout", "pass:open sesame"]);
    stage.verdict(&with(&des3, "sslpassword='open sesame'"), Verdict::Encrypted).await;
    let der = locked("der.key", &["pkcs8", "-topk8", "-nocrypt", "-outform", "DER"]);
    stage.verdict(&with(&der, ""), Verdict::Encrypted).await;
    // Without a password the user has to be asked for it.
    let locked_up = info(&stage.target(&with(&encrypted, "")));
    let error = refused(&locked_up).await;
    assert_eq!(error.needs_key_password(), Some(encrypted.as_path()), "{error}");
    connected(&locked_up.clone().with_key_password(Secret::new("open sesame"))).await;
    // The format of old versions of OpenSSL is refused with the remedy; libpq accepts it.
    let old = locked("old.key", &["ec", "-aes256", "-passout", "pass:open sesame"]);
    let text = std::fs::read_to_string(&old).unwrap();
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        let error = refused(&info(&stage.target(&with(&old, "sslpassword='open sesame'")))).await.to_string();
        assert!(error.contains("`openssl pkcs8 -topk8`"), "{error}");
    }
}

/// As psql does: on the terminal, without an echo, and only when TLS needs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_password_of_a_key_is_asked_for() {
    let stage = Stage::new().await;
    let certificate = stage.issue("certified", "/CN=certified");
    let (key, encrypted) = (stage.ca.file("certified.key"), stage.ca.file("locked.key"));
    run(Command::new("openssl")
        .args(["pkcs8", "-topk8", "-passout", "pass:open sesame", "-in"])
        .arg(&key)
        .arg("-out")
        .arg(&encrypted));
    std::fs::set_permissions(&encrypted, std::fs::Permissions::from_mode(0o600)).unwrap();
    let target = stage.target(&format!(
        "user=certified sslmode=require sslcert={} sslkey={}",
        shown(&certificate),
        shown(&encrypted)
    ));
    let mut dashboard = Dashboard::at((120, 35), &target, &[]);
    let prompt = format!("Password for the key {}: ", shown(&encrypted));
    dashboard.screen.wait("the prompt", |seen| String::from_utf8_lossy(&seen.raw).contains(&prompt));
    dashboard.screen.write(b"open sesame\r");
    dashboard.screen.shows("LIVE");
    assert!(!String::from_utf8_lossy(&dashboard.screen.seen().raw).contains("sesame"));
    dashboard.quit();

    dashboard.again((120, 35), &target, &[]);
    dashboard.screen.wait("the prompt", |seen| String::from_utf8_lossy(&seen.raw).contains(&prompt));
    dashboard.screen.write(b"wrong\r");
    let error = format!("the password does not decrypt the key {}", shown(&encrypted));
    dashboard.screen.wait("the refusal", |seen| String::from_utf8_lossy(&seen.raw).contains(&error));
    assert_eq!(dashboard.screen.wait_exit(), 1);
}
