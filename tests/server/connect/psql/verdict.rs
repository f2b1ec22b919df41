//! The result of a case, in locktop and in psql.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use locktop::pg::connect::connect;
use locktop::pg::conninfo::{ConnInfo, Flags, Sources};

use super::super::server::{Server, free_port};
use super::cases::Case;

/// The result of a case.
pub(super) enum Verdict {
    /// A session, and its facts.
    In(String),
    /// Refused before connecting.
    Refused(String),
    /// No session.
    Failed(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(facts) => write!(f, "in: {facts}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// The server, database and role of the session, with the requested settings.
const FACTS: &str =
    "select concat_ws('|', current_user, current_database(), current_setting('application_name'),
    coalesce(host(inet_server_addr()), 'socket'), current_setting('port'),
    (select ssl from pg_stat_ssl where pid = pg_backend_pid()),
    (select version from pg_stat_ssl where pid = pg_backend_pid()),
    current_setting('geqo'), current_setting('work_mem'), current_setting('geqo_threshold'))";

/// The values of the names in braces.
pub(super) struct World(BTreeMap<&'static str, String>);

impl World {
    pub(super) fn new(server: &Server, read_only: &Server) -> Self {
        let directory = server.socket_directory();
        let text = |path: &Path| path.display().to_string();
        Self(BTreeMap::from([
            ("{P}", server.port.to_string()),
            ("{D}", text(directory)),
            ("{E}", text(directory).replace('/', "%2F")),
            ("{R}", read_only.port.to_string()),
            ("{F}", free_port().to_string()),
            ("{CRT}", text(&directory.join("data/server.crt"))),
            ("{ME}", whoami::username().unwrap()),
        ]))
    }

    fn fill(&self, text: &str, home: &Path) -> String {
        let filled = self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        filled.replace("{H}", &home.display().to_string())
    }

    /// A home directory with the files of the case.
    pub(super) fn home(&self, case: &Case) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, mode, text) in case.files {
            super::write(&home.path().join(name), &self.fill(text, home.path()), *mode);
        }
        home
    }

    pub(super) async fn locktop(&self, case: &Case, home: &Path) -> Verdict {
        let env: BTreeMap<&str, String> =
            case.env.iter().map(|(name, value)| (*name, self.fill(value, home))).collect();
        let target = case.target.map(|target| self.fill(target, home));
        let mut flags = Flags::default();
        for pair in case.flags.chunks(2) {
            let [flag, value] = pair else { panic!("{case:?}") };
            let place = match *flag {
                "-h" => &mut flags.host,
                "-p" => &mut flags.port,
                "-U" => &mut flags.user,
                "-d" => &mut flags.dbname,
                other => panic!("no flag {other}"),
            };
            *place = Some(self.fill(value, home));
        }
        let sources = Sources {
            env: &|name| env.get(name).cloned(),
            home: Some(home.to_owned()),
            ..Sources::of_process(target.as_deref(), flags)
        };
        let info = match ConnInfo::resolve(&sources) {
            Ok(info) => info,
            Err(error) => return Verdict::Refused(error.to_string()),
        };
        match connect(&info).await {
            Ok(connection) => Verdict::In(connection.client.query_one(FACTS, &[]).await.unwrap().get(0)),
            Err(error) => Verdict::Failed(error.to_string()),
        }
    }

    pub(super) fn psql(&self, case: &Case, home: &Path) -> Verdict {
        let mut command = psql();
        command.args(["-X", "-A", "-t", "-q", "-w", "-c", FACTS]);
        command.args(case.flags.iter().map(|flag| self.fill(flag, home)));
        command.args(case.target.map(|target| self.fill(target, home)));
        command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(case.env.iter().map(|(name, value)| (name, self.fill(value, home))));
        let output = command.stdin(Stdio::null()).output().expect(MISSING);
        let error = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " / ");
        if output.status.success() {
            let facts = String::from_utf8(output.stdout).unwrap().trim().to_owned();
            let name = Path::new(&std::env::args().next().unwrap()).file_stem().unwrap().to_owned();
            return Verdict::In(facts.replacen("|psql|", &format!("|{}|", name.display()), 1));
        }
        let asked = ["connection to server", "could not translate host name"];
        if asked.iter().any(|word| error.contains(word)) {
            Verdict::Failed(error)
        } else {
            Verdict::Refused(error)
        }
    }
}

const MISSING: &str =
    "this test needs psql: `apt-get install postgresql-client`, or run tests/run.sh, which installs it";

/// Debian's `psql` in the PATH is a script that makes up a host; the program itself is here.
pub(crate) fn psql() -> Command {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut programs: Vec<_> =
        installed.map(|version| version.path().join("bin/psql")).filter(|path| path.exists()).collect();
    programs.sort();
    Command::new(programs.pop().unwrap_or_else(|| "psql".into()))
}

/// The major version of the installed psql.
pub(super) fn psql_version() -> u32 {
    let output = psql().arg("--version").output().expect(MISSING);
    let text = String::from_utf8(output.stdout).unwrap();
    let number = text.split_whitespace().find_map(|word| word.split('.').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{text}"))
}
