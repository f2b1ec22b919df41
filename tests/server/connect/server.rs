//! A PostgreSQL server for one test: private socket, loopback port, removed with the test however that ends.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use locktop::demo::postgres::{Binaries, Options};
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;

const START_LIMIT: Duration = Duration::from_secs(60);

/// Waits for the end of PostgreSQL or of this process: the pipe on its standard input closes when this
/// process ends.
const KEEPER: &str = r#"
    dir=$1; shift
    "$@" >"$dir/log" 2>&1 &
    pid=$!
    cat >/dev/null
    kill -QUIT $pid 2>/dev/null
    wait $pid
    rm -rf "$dir"
"#;

/// The roles that can connect, and how. Sessions over the socket are trusted.
const HBA: &str = "\
local     all all                       trust
hostssl   all only_tls    127.0.0.1/32  scram-sha-256
hostnossl all only_plain  127.0.0.1/32  scram-sha-256
hostssl   all certified   127.0.0.1/32  cert
hostssl   all twice       127.0.0.1/32  scram-sha-256 clientcert=verify-ca
host      all alice       127.0.0.1/32  scram-sha-256
host      all clear       127.0.0.1/32  password
host      all hashed      127.0.0.1/32  md5
host      all crowd       127.0.0.1/32  trust
host      all jürgen      127.0.0.1/32  scram-sha-256
";

const ROLES: &str = "
    create role alice login password 'right';
    create role only_tls login password 'right';
    create role only_plain login password 'right';
    create role clear login password 'right';
    create role crowd login;
    create role outsider login;
    set password_encryption = md5;
    create role hashed login password 'right';
";

pub(crate) struct Server {
    keeper: Child,
    directory: PathBuf,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server with more settings, `name=value` each.
    pub(crate) async fn start(settings: &[&str]) -> Self {
        let directory = new_directory();
        initialize(&directory);
        for _ in 0..5 {
            let server = Self::launch(&directory, settings);
            if let Some(server) = server.ready().await {
                let admin = server.admin().await;
                // A statement by itself, so that the next one is a transaction of its own.
                admin.client.batch_execute("set default_transaction_read_only = off").await.unwrap();
                admin.client.batch_execute(ROLES).await.unwrap();
                return server;
            }
        }
        panic!("no free port in five attempts");
    }

    fn launch(directory: &Path, settings: &[&str]) -> Self {
        let port = free_port();
        let mut postgres = as_server_user("sh");
        postgres.args(["-c", KEEPER, "keeper"]).arg(directory).arg(binary("postgres"));
        postgres.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
        postgres.arg("-p").arg(port.to_string());
        for setting in
            ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=4MB"].iter().chain(settings)
        {
            postgres.arg("-c").arg(setting);
        }
        let keeper = postgres.stdin(Stdio::piped()).process_group(0).spawn().unwrap();
        Self { keeper, directory: directory.to_owned(), port }
    }

    /// Waits until it answers; `None` if its port was taken meanwhile.
    async fn ready(mut self) -> Option<Self> {
        let deadline = deadline(START_LIMIT);
        loop {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            if log.contains("could not create any TCP/IP sockets") {
                self.stop();
                return None;
            }
            match connect(&self.local("postgres")).await {
                Ok(_) => return Some(self),
                Err(error) => assert!(!passed(deadline), "the server does not start: {error}\n{log}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Over the socket as this role.
    pub(crate) fn local(&self, user: &str) -> ConnInfo {
        self.socket(&format!("user={user}"))
    }

    pub(crate) fn socket(&self, more: &str) -> ConnInfo {
        info(&format!("host={} port={} dbname=postgres {more}", self.directory.display(), self.port))
    }

    /// Over TCP.
    pub(crate) fn tcp(&self, more: &str) -> ConnInfo {
        info(&format!("host=127.0.0.1 port={} dbname=postgres {more}", self.port))
    }

    pub(crate) fn place(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn socket_directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn socket_path(&self) -> String {
        format!("{}/.s.PGSQL.{}", self.directory.display(), self.port)
    }

    pub(crate) async fn admin(&self) -> Connection {
        connect(&self.local("postgres")).await.unwrap()
    }

    /// Asks it to end once the last session has.
    pub(crate) fn begin_smart_shutdown(&self) {
        let pid = std::fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        run(Command::new("kill").args(["-TERM", &pid]));
    }

    /// Ends it at once.
    pub(crate) fn stop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The environment and the home directory of this process have no effect in these tests.
pub(crate) fn info(target: &str) -> ConnInfo {
    ConnInfo::resolve(&locktop::pg::conninfo::Sources {
        target: Some(target),
        flags: locktop::pg::conninfo::Flags::default(),
        flags_first: false,
        env: &|_| None,
        home: None,
        os_user: Some("nobody".to_owned()),
    })
    .unwrap()
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn deadline(limit: Duration) -> Instant {
    locktop::clock::monotonic() + limit
}

pub(crate) fn passed(deadline: Instant) -> bool {
    locktop::clock::monotonic() > deadline
}

fn new_directory() -> PathBuf {
    let directory = tempfile::Builder::new().prefix("locktop-connect-").tempdir_in("/tmp").unwrap().keep();
    if let Some((uid, gid)) = server_user() {
        std::os::unix::fs::chown(&directory, Some(uid), Some(gid)).unwrap();
    }
    directory
}

/// The database cluster, and a self-signed certificate in it.
fn initialize(directory: &Path) {
    let data = directory.join("data");
    run(as_server_user(binary("initdb"))
        .args(["-N", "--locale=C", "-E", "UTF8", "-U", "postgres", "-A", "trust", "-D"])
        .arg(&data));
    run(as_server_user("openssl")
        .args(["req", "-new", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=somebody-else", "-out"])
        .arg(data.join("server.crt"))
        .arg("-keyout")
        .arg(data.join("server.key")));
    old_certificate(&data);
    std::fs::set_permissions(data.join("server.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(data.join("pg_hba.conf"), HBA).unwrap();
}

/// One of X.509 version 1, with the same key.
fn old_certificate(data: &Path) {
    let key = data.join("server.key");
    let (request, old) = (data.join("old.csr"), data.join("old.crt"));
    run(as_server_user("openssl")
        .args(["req", "-new", "-subj", "/CN=old", "-key"])
        .arg(&key)
        .arg("-out")
        .arg(&request));
    run(as_server_user("openssl")
        .args(["x509", "-req", "-days", "2", "-in"])
        .arg(&request)
        .arg("-signkey")
        .arg(&key)
        .arg("-out")
        .arg(&old));
    let text = run(Command::new("openssl").args(["x509", "-noout", "-text", "-in"]).arg(&old)).stdout;
    assert!(
        String::from_utf8_lossy(&text).contains("Version: 1 "),
        "openssl x509 -req makes no version 1 any more"
    );
}

/// One of a server's programs, as the demo finds them.
fn binary(name: &str) -> PathBuf {
    static BINARIES: OnceLock<PathBuf> = OnceLock::new();
    BINARIES.get_or_init(|| Binaries::find(&Options::default()).unwrap().bin).join(name)
}

/// PostgreSQL refuses to run as root: then it runs as the user postgres, or nobody.
fn server_user() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<u32>().ok()
    };
    if id(&["-u"]) != Some(0) {
        return None;
    }
    ["postgres", "nobody"].into_iter().find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)))
}

fn as_server_user(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null());
    if let Some((uid, gid)) = server_user() {
        command.uid(uid).gid(gid);
    }
    command
}

pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: is it installed?"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}
