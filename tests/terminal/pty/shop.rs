//! A shop's server on a bad day, for the pictures: a transaction that somebody left open, a migration that waits for a report, a deployment
//! that forgot its lock, and tasks, leases and a queue of which not all are well. All of it has come about: no row says what is not so.

use std::time::Duration;

use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::demo::scenario::{Running, Scenario, ScratchSchema, Timing};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use tempfile::NamedTempFile;
use tokio_postgres::Client;

use super::screen::{Screen, Size};
use super::support;

/// Who looks, and what that role may do.
const OPERATOR: &str = "CREATE ROLE ops LOGIN; GRANT pg_read_all_stats, pg_signal_backend TO ops";

/// What `R` and the others need.
const GRANTS: &str = "GRANT USAGE ON SCHEMA locktop TO ops;
    GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA locktop TO ops;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA locktop TO ops";

const CONFIG: &str = "[thresholds]\norphan_grace = \"1s\"\ntask_overdue = \"10s\"\n";

/// Each with its timeout and when it is due.
const TASKS: &str =
    "INSERT INTO scheduled_tasks (task_name, task_type, priority, timeout, next_run_at, is_enabled) VALUES
        ('nightly report', 'sql', 5, '10 min', clock_timestamp(), true),
        ('invoice mails', 'http', 5, '2 min', clock_timestamp(), true),
        ('rebuild search index', 'command', 0, '15 s', clock_timestamp(), true),
        ('报表生成任务', 'sql', 0, '5 min', clock_timestamp(), true),
        ('sync CRM', 'http', 0, '1 min', clock_timestamp(), true),
        ('import prices', 'sql', 0, '5 min', clock_timestamp(), true),
        ('archive audit log', 'sql', 0, '30 min', clock_timestamp() + interval '3 hours', true),
        ('warm product cache', 'sql', 0, '30 min', NULL, false);
    UPDATE scheduled_tasks SET max_attempts = 1 WHERE task_name = 'sync CRM'";

/// Which worker runs which task; the fourth is the one that is lost.
const RUNS: [&str; 4] = ["worker-1", "worker-2", "worker-3", "worker-7"];

const FAILURE: &str = "SELECT try_acquire_task_lock(5, 'worker-4');
    SELECT try_release_task_lock(5, 'worker-4', 'failed', '503 from crm.example.com')";

const LEASES: &str = "SELECT lease_acquire(1, 'billing-1', '10 min');
    SELECT lease_acquire(2, 'mailer-2', '90 s');
    SELECT lease_acquire(3, 'importer-1', '5 s');
    SELECT lease_release(4, lease_acquire(4, 'backup-1', '1 hour'))";

const QUEUE: &str = "INSERT INTO task_queue (task_name, payload)
        SELECT (ARRAY['send mail', 'resize image', 'index order'])[1 + n % 3], jsonb_build_object('order', 7000 + n)
          FROM generate_series(1, 12) n";

/// Takes an item, and fails another.
const FAILED_ITEM: &str = "SELECT finish_queue_item(task_id, 'queue-1', attempt, 'failed', 'mailbox full')
    FROM claim_queue_items('queue-1', 1)";

const LIMITS: &str =
    "SELECT count(check_rate_limit('login 203.0.113.7', 20, 3600)) FROM generate_series(1, 20);
    SELECT count(check_rate_limit('api acme', 100, 3600)) FROM generate_series(1, 83);
    SELECT count(check_rate_limit('mail', 500, 3600)) FROM generate_series(1, 41);
    INSERT INTO id_generator (worker_id) VALUES (1), (2);
    SELECT generate_snowflake_id(1); SELECT generate_snowflake_id(2)";

/// What Prisma Migrate locks.
const MIGRATION: &str = "SELECT pg_advisory_lock(72707369)";

/// The server and everybody on it, who is gone before it.
pub(crate) struct Shop {
    app: ConnInfo,
    config: NamedTempFile,
    sessions: Vec<Client>,
    running: Vec<Running>,
    _server: EmbeddedServer,
}

impl Shop {
    /// A server with its tables and workers, where nobody waits yet.
    pub(crate) async fn open() -> Self {
        let server = EmbeddedServer::start(Options::default()).await.unwrap();
        let admin = support::open(&support::conninfo(&server)).await.client;
        for statement in [OPERATOR, "CREATE ROLE app LOGIN", "CREATE DATABASE shop OWNER app"] {
            admin.batch_execute(statement).await.unwrap();
        }
        admin.batch_execute("ALTER DATABASE shop SET locktop.orphan_grace = '1 s'").await.unwrap();
        let app =
            server.conninfo().replace("dbname=postgres", "dbname=shop").replace("user=postgres", "user=app");
        let config = NamedTempFile::new().unwrap();
        let target = app.replace("user=app", "user=ops");
        let targets = format!("[targets.shop]\nconninfo = \"{target}\"\ntrusted_owners = [\"app\"]\n");
        std::fs::write(config.path(), targets + CONFIG).unwrap();
        let app = ConnInfo::parse(&app).unwrap();
        let mut shop = Self { app, config, sessions: Vec::new(), running: Vec::new(), _server: server };
        shop.furnish().await;
        shop
    }

    /// The program, as it looks at this server.
    pub(crate) fn screen(&self, size: Size) -> Screen {
        let config = self.config.path().to_str().unwrap();
        Screen::spawn(size, &[("COLORTERM", "truecolor"), ("LOCKTOP_CONFIG", config)], &["shop"])
    }

    /// Those who wait, and whom they wait for.
    pub(crate) async fn trouble(&mut self) {
        let scratch = ScratchSchema::open(&self.app).await.unwrap();
        let timing = Timing { step: Duration::from_millis(600), ..Timing::TEST };
        for scenario in [Scenario::Chain, Scenario::Convoy] {
            self.running.push(scenario.start(&scratch, timing).await.unwrap());
        }
        self.session("deploy-1").await.batch_execute(MIGRATION).await.unwrap();
        let next = self.connect("deploy-2").await;
        // It waits until the server is gone.
        tokio::spawn(async move { drop(next.batch_execute(MIGRATION).await) });
    }

    async fn connect(&self, application: &str) -> Client {
        let client = support::open(&self.app.clone().with_application_name(application)).await.client;
        client.batch_execute("SET search_path = locktop, public").await.unwrap();
        client
    }

    /// A session that stays.
    async fn session(&mut self, application: &str) -> &Client {
        let client = self.connect(application).await;
        self.sessions.push(client);
        self.sessions.last().unwrap()
    }

    /// Tasks, leases, the queue and limits.
    async fn furnish(&mut self) {
        let mut owner = support::open(&self.app).await;
        schema::install(&mut owner.client, &SchemaName::default()).await.unwrap();
        owner.client.batch_execute(GRANTS).await.unwrap();
        let client = self.connect("shop").await;
        for statement in [TASKS, FAILURE, LEASES, QUEUE, FAILED_ITEM, LIMITS] {
            client.batch_execute(statement).await.unwrap();
        }
        for (place, worker) in RUNS.into_iter().enumerate() {
            let run = format!("SELECT try_acquire_task_lock({}, '{worker}')", place + 1);
            self.session(worker).await.batch_execute(&run).await.unwrap();
        }
        // Its session ends, and its task stays in the log.
        drop(self.sessions.pop());
        for worker in ["queue-1", "queue-2", "queue-3"] {
            let claim = format!("SELECT claim_queue_items('{worker}', 1)");
            self.session(worker).await.batch_execute(&claim).await.unwrap();
        }
        drop(self.sessions.pop());
    }
}
