//! Certificates of ours, for servers that want one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(feature = "encrypted-keys")]
use locktop::pg::conninfo::Secret;

use super::super::super::dashboard::Dashboard;
use super::super::server::{Server, info, run};
use super::super::{connected, refused};
use super::authority::{Authority, Wanted};
use super::{HOST, Verdict, ours, theirs};

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

    /// Both come to this verdict; what ours says is returned.
    async fn verdict(&self, more: &str, expected: Verdict) -> String {
        let target = self.target(more);
        let ((mine, said), (psql, theirs)) = (ours(&target).await, theirs(&target, self.home.path()));
        assert_eq!((mine, psql), (expected, expected), "{target}\n    locktop: {said}\n    psql: {theirs}");
        said
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
    // In every mode that comes to TLS.
    for (mode, verdict) in
        [("disable", Verdict::No), ("allow", Verdict::Encrypted), ("prefer", Verdict::Encrypted)]
    {
        let asked = with(&good, "certified.key").replace("sslmode=require", &format!("sslmode={mode}"));
        stage.verdict(&asked, verdict).await;
    }
    let said = stage.verdict("user=certified sslmode=require", Verdict::No).await;
    assert!(said.contains("certificate"), "{said}");
    let said = stage.verdict(&with(&other, "somebody.key"), Verdict::No).await;
    assert!(said.contains("certified"), "{said}");
    let said = stage.verdict(&with(&foreign, "foreign.key"), Verdict::No).await;
    assert!(said.contains("does not accept the client certificate"), "{said}");
    let said = stage.verdict(&with(&good, "somebody.key"), Verdict::No).await;
    assert!(said.contains("is not the key of"), "{said}");
    let said = stage.verdict(&with(&good, "none.key"), Verdict::No).await;
    assert!(said.contains("but not its key"), "{said}");
    let said = stage.verdict(&with(&stage.ca.file("certified.key"), "certified.key"), Verdict::No).await;
    assert!(said.contains("has no certificate in PEM"), "{said}");
    // One that is not there is none.
    stage.verdict(&with(&stage.ca.file("none.crt"), "none.key"), Verdict::No).await;
    // Beside a password.
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
    // One that nobody asked for is not shown, and may be required.
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
    // The server's own certificate is of nobody in the file, which counts in this mode too.
    assert_eq!(theirs(&target, stage.home.path()).0, Verdict::No);
    let sources = locktop::pg::conninfo::Sources {
        env: &|_| None,
        home: Some(stage.home.path().to_owned()),
        ..locktop::pg::conninfo::Sources::of_process(Some(&target), locktop::pg::conninfo::Flags::default())
    };
    let resolve = || locktop::pg::conninfo::ConnInfo::resolve(&sources).unwrap();
    assert!(refused(&resolve()).await.to_string().contains("is self-signed"), "by the file of authorities");
    std::fs::remove_file(own.join("root.crt")).unwrap();
    assert_eq!(theirs(&target, stage.home.path()).0, Verdict::Encrypted);
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
    let said = stage.verdict(&with(&key, ""), Verdict::No).await;
    assert!(said.contains("can be read by other users: chmod 600"), "{said}");
    mode(&key, 0o600);

    let locked = |name: &str, arguments: &[&str]| {
        let file = stage.ca.file(name);
        run(Command::new("openssl").args(arguments).arg("-in").arg(&key).arg("-out").arg(&file));
        mode(&file, 0o600);
        file
    };
    let encrypted = locked("locked.key", &["pkcs8", "-topk8", "-passout", "pass:open sesame"]);
    stage.verdict(&with(&encrypted, "sslpassword='open sesame'"), Verdict::Encrypted).await;
    let said = stage.verdict(&with(&encrypted, "sslpassword=wrong"), Verdict::No).await;
    assert!(said.contains("the password does not decrypt the key"), "{said}");
    let scrypt = locked("scrypt.key", &["pkcs8", "-topk8", "-scrypt", "-passout", "pass:open sesame"]);
    stage.verdict(&with(&scrypt, "sslpassword='open sesame'"), Verdict::Encrypted).await;
    // What `openssl req` makes.
    let des3 = locked("des3.key", &["pkcs8", "-topk8", "-v2", "des3", "-passout", "pass:open sesame"]);
    stage.verdict(&with(&des3, "sslpassword='open sesame'"), Verdict::Encrypted).await;
    let der = locked("der.key", &["pkcs8", "-topk8", "-nocrypt", "-outform", "DER"]);
    stage.verdict(&with(&der, ""), Verdict::Encrypted).await;
    // Without a password somebody has to be asked.
    let locked_up = info(&stage.target(&with(&encrypted, "")));
    let error = refused(&locked_up).await;
    assert_eq!(error.needs_key_password(), Some(encrypted.as_path()), "{error}");
    connected(&locked_up.clone().with_key_password(Secret::new("open sesame"))).await;
    // The way of old versions of OpenSSL is refused with the remedy; libpq takes it.
    let old = locked("old.key", &["ec", "-aes256", "-passout", "pass:open sesame"]);
    let text = std::fs::read_to_string(&old).unwrap();
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        let error = refused(&info(&stage.target(&with(&old, "sslpassword='open sesame'")))).await.to_string();
        assert!(error.contains("`openssl pkcs8 -topk8`"), "{error}");
    }
}

/// As psql does: on the terminal, without an echo, and only when TLS comes to it.
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
    let said = format!("the password does not decrypt the key {}", shown(&encrypted));
    dashboard.screen.wait("the refusal", |seen| String::from_utf8_lossy(&seen.raw).contains(&said));
    assert_eq!(dashboard.screen.wait_exit(), 1);
}
