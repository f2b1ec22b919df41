//! The server with both systems installed, and a round on it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};

use super::Round;
use super::process;
use super::system::{self, System};
use super::tally::Tally;
use super::worker::{self, Shared};

const WORKERS: usize = 50;
const TASKS: usize = 10_000;
/// Tasks that must be left at the end of a round, so that an empty result always is a lost race.
const LEFT: usize = 1_000;
/// Time before the measurement begins.
const WARM_UP: Duration = Duration::from_millis(1_500);

pub(crate) struct Stage {
    server: EmbeddedServer,
}

impl Stage {
    pub(crate) async fn open() -> Self {
        // PostgreSQL's defaults; the launcher's settings are for an idle server.
        let options = Options { version: Some(15), ..Options::default() }
            .with("shared_buffers", "128MB")
            .with("max_wal_size", "1GB");
        let stage = Self { server: EmbeddedServer::start(options).await.unwrap() };
        let admin = stage.connect("postgres").await;
        admin.client.batch_execute("CREATE DATABASE locktop").await.unwrap();
        admin.client.batch_execute("CREATE DATABASE recipe").await.unwrap();
        let mut locktop = stage.connect("locktop").await;
        schema::install(&mut locktop.client, &SchemaName::default()).await.unwrap();
        stage.connect("recipe").await.client.batch_execute(&system::recipe()).await.unwrap();
        stage
    }

    pub(crate) async fn close(self) {
        self.server.stop().await.unwrap();
    }

    async fn connect(&self, database: &str) -> Connection {
        let info = ConnInfo::parse(&self.server.conninfo()).unwrap().with_dbname(database);
        connect(&info).await.unwrap()
    }

    /// All workers run for a while; the time after the warm-up counts.
    pub(crate) async fn round(&self, system: System, round: Round) -> Tally {
        let admin = self.connect(system.database()).await;
        admin.client.batch_execute(&system.fill(TASKS)).await.unwrap();
        admin.client.batch_execute("VACUUM ANALYZE").await.unwrap();
        admin.client.batch_execute("CHECKPOINT").await.unwrap();
        no_schedule_within(&admin, round.length + WARM_UP + round.work * 2).await;
        let shared = Rc::new(Shared { tally: RefCell::default(), stop: Cell::new(false) });
        let local = tokio::task::LocalSet::new();
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let connection = self.connect(system.database()).await;
            // With a delay for each: otherwise all workers would complete their tasks at the same times for ever.
            let delay = round.work * u32::try_from(number).unwrap() / u32::try_from(WORKERS).unwrap();
            workers.push(local.spawn_local(worker::run(
                connection,
                system,
                round,
                number,
                delay,
                Rc::clone(&shared),
            )));
        }
        local
            .run_until(async {
                tokio::time::sleep(WARM_UP + round.work * 2).await;
                let before = self.cpu(&admin).await;
                shared.tally.borrow_mut().begin();
                let started = clock::monotonic();
                while started.elapsed() < round.length && shared.tally.borrow().finished() < TASKS - LEFT {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let cpu = self.cpu(&admin).await - before;
                shared.tally.borrow_mut().end(cpu);
                shared.stop.set(true);
                for worker in workers {
                    worker.await.unwrap();
                }
            })
            .await;
        shared.tally.take()
    }

    /// CPU time of the whole server, in seconds. No session connects or disconnects while it is measured.
    async fn cpu(&self, admin: &Connection) -> f64 {
        let rows = admin.client.query("SELECT pid FROM pg_stat_activity", &[]).await.unwrap();
        rows.iter().map(|row| process::backend_cpu(row.get(0))).sum::<f64>()
            + process::backend_cpu(self.server.pid().unwrap())
    }
}

/// Waits until no completed task becomes due again during the round: then a task that runs again was run twice.
async fn no_schedule_within(admin: &Connection, length: Duration) {
    let left = "SELECT (300 - extract(epoch FROM now()) % 300)::float8";
    while admin.client.query_one(left, &[]).await.unwrap().get::<_, f64>(0) < length.as_secs_f64() + 1.0 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
