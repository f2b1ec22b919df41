//! A real pooler in front of a server.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;

use super::support::wait_for;

const PORT: u16 = 6432;

/// Ends the pooler when this process ends, however it does.
const KEEPER: &str = r#"
    trap '' INT TERM HUP
    "$1" "$2/pgbouncer.ini" >"$2/output" 2>&1 &
    pid=$!
    cat >/dev/null
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    rm -rf "$2"
"#;

/// A pooler on a socket of its own. It ends when dropped.
pub(crate) struct PgBouncer {
    keeper: Child,
    directory: PathBuf,
}

impl PgBouncer {
    /// Starts one with `pool_mode` and further lines of its configuration.
    pub(crate) fn start(server: &EmbeddedServer, pool_mode: &str, more: &str) -> Self {
        let program = program();
        // It refuses to run as root, and has to get to the server's socket: so it runs as the server does.
        let owner = std::fs::metadata(server.socket_dir()).unwrap();
        let directory = tempfile::Builder::new().prefix("locktop-pgbouncer-").tempdir().unwrap().keep();
        let dir = directory.display();
        let config = format!(
            "[databases]\n* = host={} port=5432 user=postgres\n[pgbouncer]\nunix_socket_dir = {dir}\nlisten_port = {PORT}\n\
             auth_type = any\nlogfile = {dir}/log\npidfile = {dir}/pid\npool_mode = {pool_mode}\n{more}\n",
            server.socket_dir().display()
        );
        std::fs::write(directory.join("pgbouncer.ini"), config).unwrap();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut keeper = Command::new("/bin/sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(program).arg(&directory);
        if rustix::process::geteuid().is_root() {
            for path in [directory.clone(), directory.join("pgbouncer.ini")] {
                chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
            }
            keeper.uid(owner.uid()).gid(owner.gid());
        }
        let keeper = keeper.current_dir("/").stdin(Stdio::piped()).process_group(0).spawn().unwrap();
        let pooler = Self { keeper, directory };
        wait_for("the pooler's socket", || {
            let output = || std::fs::read_to_string(pooler.directory.join("output")).unwrap_or_default();
            assert!(!output().contains("FATAL"), "{}", output());
            pooler.directory.join(format!(".s.PGSQL.{PORT}")).exists()
        });
        pooler
    }

    /// How to get through it to a database.
    pub(crate) fn conninfo(&self, dbname: &str) -> ConnInfo {
        let text = format!(
            "host={} port={PORT} user=postgres sslmode=disable dbname={dbname}",
            self.directory.display()
        );
        ConnInfo::parse(&text).unwrap()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    places.map(|place| place.join("pgbouncer")).find(|program: &PathBuf| Path::is_file(program)).expect(
        "this test needs PgBouncer: apt-get install pgbouncer, or what your system has for it (tests/run.sh does it as root)",
    )
}
