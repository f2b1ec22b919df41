//! A worker that follows the published recipe, with whatever functions of these names are in the schema: it fetches,
//! works and releases. As in the recipe, nothing watches the session that holds the lock while the work is in progress.

use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

use super::super::witness::Witness;
use super::simulated_work::{End, simulate};
use crate::workers::{Payload, TaskEnd, WorkerConfig};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// Between two polls while nothing is due, and before reconnecting after the server is lost.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn run(config: &WorkerConfig, quit: watch::Receiver<bool>) -> Result<(), String> {
    super::until(quit, Box::pin(work(config))).await
}

async fn work(config: &WorkerConfig) -> Result<(), String> {
    let info = ConnInfo::parse(&config.conninfo).map_err(|error| error.to_string())?;
    let info = info.with_application_name(&config.worker);
    let witness = Witness::open(&info, &config.worker, config.process).await?;
    let tasks = config.plan.tasks();
    let mut session = open(&info).await?;
    loop {
        if session.is_closed() {
            session = open(&info).await?;
        }
        let Ok(Some((task, name))) = fetch(&session, &config.worker).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let record = witness.begin(task, None).await?;
        let payload = match tasks.iter().find(|task| task.name == name) {
            Some(task) => Payload { seconds: config.plan.scaled(task.work), ends: task.ends },
            None => Payload { seconds: 1.0, ends: TaskEnd::Well },
        };
        let status = match simulate(task, payload, &record, std::future::pending::<()>()).await? {
            End::Failed(_) => "failed",
            End::Done | End::Stopped(()) => "completed",
        };
        record.end(status).await?;
        if session.is_closed() {
            session = open(&info).await?;
        }
        let release = "SELECT release_task_lock($1::int, $2::text, $3::text)";
        // There is no result to check: the recipe's function returns nothing.
        let _ = session.execute(release, &[&task, &config.worker, &status]).await;
    }
}

async fn open(info: &ConnInfo) -> Result<Client, String> {
    Ok(connect(info).await.map_err(|error| error.to_string())?.client)
}

async fn fetch(session: &Client, worker: &str) -> Result<Option<(i32, String)>, tokio_postgres::Error> {
    let sql = "SELECT task_id, task_name FROM worker_fetch_and_execute_task($1::text) WHERE acquired";
    session.query_opt(sql, &[&worker]).await?.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}
