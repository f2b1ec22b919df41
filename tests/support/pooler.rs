//! A real pgbouncer in front of a test server.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::connect::connect;
use locktop::pg::conninfo::ConnInfo;

use super::support::wait_for;

/// The pooler ends when this is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Pooler {
    directory: PathBuf,
    keeper: Child,
}

impl Pooler {
    /// `mode` is `transaction`, `session` or `statement`. Its files are in the server's directory, and are
    /// removed with it.
    pub(crate) fn start(server: &EmbeddedServer, mode: &str) -> Self {
        Self::start_with(server, mode, "")
    }

    /// The same with additional lines of configuration.
    pub(crate) fn start_with(server: &EmbeddedServer, mode: &str, lines: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let program = [
            "/usr/sbin/pgbouncer",
            "/usr/bin/pgbouncer",
            "/usr/local/bin/pgbouncer",
            "/opt/homebrew/bin/pgbouncer",
        ]
        .into_iter()
        .find(|path| fs::exists(path).unwrap())
        .expect(
            "this test needs pgbouncer: `apt-get install pgbouncer`, or run tests/run.sh, which installs it",
        );
        let directory =
            server.socket_dir().join(format!("pooler-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&directory).unwrap();
        let config = format!(
            "[databases]\n* = host={} port=5432 user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n\
             unix_socket_dir = {}\nauth_type = any\npool_mode = {mode}\n{lines}\n",
            server.socket_dir().display(),
            directory.display()
        );
        fs::write(directory.join("pgbouncer.ini"), config).unwrap();
        // Its socket must belong to the account that runs the server; and pgbouncer refuses to run as root.
        let owner = fs::metadata(server.socket_dir()).unwrap();
        let mut command = Command::new("/bin/sh");
        if owner.uid() != rustix::process::getuid().as_raw() {
            chown(&directory, Some(owner.uid()), Some(owner.gid())).unwrap();
            command.uid(owner.uid()).gid(owner.gid()).current_dir("/");
        }
        command.args(["-c", "\"$1\" -q \"$2\" </dev/null & cat; kill -INT $!", "pooler", program]);
        command.arg(directory.join("pgbouncer.ini"));
        let keeper =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pooler = Self { directory, keeper };
        // The file exists since `bind`; a connection before `listen` is refused.
        wait_for("pgbouncer to listen", || {
            UnixStream::connect(pooler.directory.join(".s.PGSQL.6432")).is_ok()
        });
        pooler
    }

    /// Changes the mode, also for connected clients. The pooler was started with `admin_users = postgres`.
    pub(crate) async fn turn(&self, from: &str, to: &str) {
        let file = self.directory.join("pgbouncer.ini");
        let text = fs::read_to_string(&file).unwrap();
        let (before, after) = (format!("pool_mode = {from}\n"), format!("pool_mode = {to}\n"));
        assert!(text.contains(&before), "{text}");
        fs::write(&file, text.replace(&before, &after)).unwrap();
        let console = format!(
            "host={} port=6432 user=postgres dbname=pgbouncer sslmode=disable",
            self.directory.display()
        );
        let console = ConnInfo::parse(&console).unwrap();
        let client = connect(&console).await.unwrap().client;
        client.simple_query("RELOAD").await.unwrap();
    }

    /// The directory of its socket; the port is 6432.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The connection string for a database through the pooler.
    pub(crate) fn target(&self, info: &ConnInfo) -> String {
        format!(
            "host={} port=6432 user=postgres dbname={} sslmode=disable",
            self.directory.display(),
            info.dbname()
        )
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
