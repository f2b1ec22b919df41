//! A database, the roles of these tests, and the calls in the server's log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::conninfo::ConnInfo;
use tokio::sync::Mutex;
use tokio_postgres::Client;

use super::support::{Servers, all_versions, database, is_long, open, versions, wait_until};

/// A superuser, a role that can see everything, and one that can also signal sessions.
pub(crate) const WATCHERS: [&str; 3] = ["boss", "monitor", "ops"];

const ROLES: &str = "
    CREATE ROLE boss SUPERUSER LOGIN;
    CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
    CREATE ROLE ops LOGIN IN ROLE pg_monitor, pg_signal_backend;
    CREATE ROLE mallory LOGIN;
    CREATE ROLE app LOGIN;
    CREATE ROLE \"Mallory\" LOGIN;";
const TRAPS: &str = include_str!("traps.sql");
/// The tables as published, with a row or two in each.
const TABLES: [&str; 3] =
    [include_str!("../tasks/recipe.sql"), include_str!("../systems/printed.sql"), include_str!("rows.sql")];
/// Tables of well-known software, in schemas that are on no search path.
const SOFTWARE: &str = include_str!("software.sql");

/// All of them.
pub(crate) const NAMES: [&str; 11] = [
    "public.scheduled_tasks",
    "public.task_execution_log",
    "public.distlock",
    "public.task_queue",
    "public.rate_limit",
    "public.id_generator",
    "jobs.good_jobs",
    "jobs.good_job_processes",
    "jobs.que_jobs",
    "jobs.states",
    "pgmq.meta",
];

/// The name of the test's own sessions: their calls do not count.
const STAGE: &str = "stage";

/// A function of mallory's that was called in another role's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) session: String,
    pub(crate) role: String,
    pub(crate) tag: String,
    pub(crate) query: String,
}

/// A database with a schema `evil` of mallory's, who can also create tables in `public`.
pub(crate) struct Ground {
    pub(crate) server: &'static EmbeddedServer,
    info: ConnInfo,
}

/// The version on which everything is tried; on the others a part is, unless the long tests are requested.
pub(crate) fn newest() -> u32 {
    *all_versions().last().unwrap()
}

pub(crate) fn is_whole(version: u32) -> bool {
    version == newest() || is_long()
}

/// The versions for tests that run on only one, unless the long tests are requested.
pub(crate) fn one_version() -> Vec<u32> {
    versions().into_iter().filter(|version| is_whole(*version)).collect()
}

/// The roles that poll: all on that version, one in turn on the others.
pub(crate) fn watchers(version: u32) -> Vec<&'static str> {
    if is_whole(version) { WATCHERS.to_vec() } else { vec![WATCHERS[version as usize % WATCHERS.len()]] }
}

/// A server whose log has every call.
async fn server_of(version: u32) -> &'static EmbeddedServer {
    static SERVERS: Servers = Servers::new();
    let start = async || {
        let options = Options { version: Some(version), ..Options::default() }
            .with("max_connections", 200)
            .with("log_min_messages", "log")
            .with("log_min_error_statement", "panic")
            .with("log_error_verbosity", "terse");
        let server = EmbeddedServer::start(options).await.unwrap();
        let info = super::support::conninfo(&server);
        open(&info).await.client.batch_execute(ROLES).await.unwrap();
        server
    };
    SERVERS.get(Some(version), start).await
}

impl Ground {
    pub(crate) async fn new(version: u32) -> Self {
        println!("PostgreSQL {version}");
        let server = server_of(version).await;
        let ground = Self { server, info: database(server).await };
        ground
            .run(
                "postgres",
                "CREATE SCHEMA evil AUTHORIZATION mallory; GRANT CREATE ON SCHEMA public TO mallory",
            )
            .await;
        ground.run("mallory", TRAPS).await;
        ground
    }

    /// The same with all tables, which are mallory's.
    pub(crate) async fn with_tables(version: u32) -> Self {
        Self::like(version, "tables", async |ground| ground.tables("mallory").await).await
    }

    /// A database as `build` makes it out of a new one, which it does once for each server.
    pub(crate) async fn like(version: u32, what: &str, build: impl AsyncFn(&Self)) -> Self {
        static MADE: Mutex<BTreeMap<(&Path, String), String>> = Mutex::const_new(BTreeMap::new());
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = server_of(version).await;
        let key = (server.socket_dir(), what.to_owned());
        let template = MADE.lock().await.get(&key).cloned();
        let template = if let Some(name) = template {
            name
        } else {
            let ground = Self::new(version).await;
            build(&ground).await;
            MADE.lock().await.entry(key).or_insert_with(|| ground.name().to_owned()).clone()
        };
        let name = format!("like_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let info = super::support::conninfo(server);
        let admin = open(&info).await;
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
        // The sessions that built it may need a moment to end, and others copy it, too.
        wait_until("the template to be free", async || admin.client.batch_execute(&sql).await.is_ok()).await;
        Self { server, info: info.with_dbname(&name) }
    }

    /// All tables, owned by this role, and readable by every role.
    pub(crate) async fn tables(&self, owner: &str) {
        let schemas = format!(
            "GRANT CREATE ON SCHEMA public TO {owner};
             CREATE SCHEMA jobs AUTHORIZATION {owner}; CREATE SCHEMA pgmq AUTHORIZATION {owner}"
        );
        self.run("postgres", &schemas).await;
        let sql = format!("{}\n{SOFTWARE}", TABLES.join("\n"));
        self.run(owner, &sql).await;
    }

    /// Runs statements as a role, in a session whose calls do not count.
    pub(crate) async fn run(&self, role: &str, sql: &str) {
        self.client(role).await.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    pub(crate) async fn client(&self, role: &str) -> Client {
        self.client_as(role, STAGE).await
    }

    /// A session of this name, whose calls count unless it is the test's own.
    pub(crate) async fn client_as(&self, role: &str, name: &str) -> Client {
        open(&self.info(role).with_application_name(name)).await.client
    }

    /// How locktop connects as a role.
    pub(crate) fn info(&self, role: &str) -> ConnInfo {
        ConnInfo::parse(&self.target(role)).unwrap()
    }

    /// The same for a command line.
    pub(crate) fn target(&self, role: &str) -> String {
        let text = self.server.conninfo().replace("user=postgres", &format!("user={role}"));
        text.replace("dbname=postgres", &format!("dbname={}", self.name()))
    }

    pub(crate) fn name(&self) -> &str {
        self.info.dbname()
    }

    /// The first column of the only row, as text.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        let sql = format!("SELECT ({sql})::text");
        self.client("postgres").await.query_one(&sql, &[]).await.unwrap().get(0)
    }

    /// The calls in this database so far, in sessions that are not the test's.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let log = std::fs::read(self.server.socket_dir().join("log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        let call = |line: &str| {
            let (_, line) = line.split_once("locktop-attack|")?;
            let mut words = line.splitn(6, '|').map(str::to_owned);
            let database = words.next()?;
            let (session, role, application) = (words.next()?, words.next()?, words.next()?);
            let (tag, query) = (words.next()?, words.next()?);
            let counts = database == self.name() && application != STAGE;
            counts.then_some(Call { session, role, tag, query })
        };
        log.lines().filter_map(call).collect()
    }

    /// Nothing was called.
    pub(crate) fn is_clean(&self, what: &str) {
        let calls = self.calls();
        assert!(calls.is_empty(), "{what}: {}", summary(&calls));
    }

    /// The tags of the calls, so that a test of a trusted role can check that its traps work.
    pub(crate) fn tags(&self) -> Vec<String> {
        let mut tags: Vec<String> = self.calls().into_iter().map(|call| call.tag).collect();
        tags.sort_unstable();
        tags.dedup();
        tags
    }
}

/// Each kind of call once, with how often and a query it came from.
fn summary(calls: &[Call]) -> String {
    let mut kinds: BTreeMap<(&str, &str, &str), (usize, &str)> = BTreeMap::new();
    for call in calls {
        let kind = (call.tag.as_str(), call.session.as_str(), call.role.as_str());
        kinds.entry(kind).or_insert((0, &call.query)).0 += 1;
    }
    let line = |((tag, session, role), (count, query)): (&(&str, &str, &str), &(usize, &str))| {
        let query: String = query.chars().take(120).collect();
        format!("{count} × {tag}, session of {session}, as {role}: {query}")
    };
    let lines: Vec<String> = kinds.iter().map(line).collect();
    format!("{} calls\n{}", calls.len(), lines.join("\n"))
}
