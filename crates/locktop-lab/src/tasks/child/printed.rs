//! A worker after the published recipe, with whatever functions of these names are in the schema: it fetches, works and releases. As in
//! the recipe nothing watches the session that holds the lock while the work goes on.

use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

use super::super::witness::Witness;
use super::labor::{End, labor};
use crate::workers::{Ends, Orders, Payload};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// Between two looks while nothing is due, and until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn run(orders: &Orders, quit: watch::Receiver<bool>) -> Result<(), String> {
    super::until(quit, Box::pin(work(orders))).await
}

async fn work(orders: &Orders) -> Result<(), String> {
    let info = ConnInfo::parse(&orders.conninfo).map_err(|error| error.to_string())?;
    let info = info.with_application_name(&orders.worker);
    let witness = Witness::open(&info, &orders.worker, orders.process).await?;
    let chores = orders.plan.chores();
    let mut session = open(&info).await?;
    loop {
        if session.is_closed() {
            session = open(&info).await?;
        }
        let Ok(Some((task, name))) = fetch(&session, &orders.worker).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let record = witness.begin(task, None).await?;
        let payload = match chores.iter().find(|chore| chore.name == name) {
            Some(chore) => Payload { seconds: orders.plan.scaled(chore.work), ends: chore.ends },
            None => Payload { seconds: 1.0, ends: Ends::Well },
        };
        let status = match labor(task, payload, &record, std::future::pending::<()>()).await? {
            End::Failed(_) => "failed",
            End::Done | End::Stopped(()) => "completed",
        };
        record.end(status).await?;
        if session.is_closed() {
            session = open(&info).await?;
        }
        let release = "SELECT release_task_lock($1::int, $2::text, $3::text)";
        // What becomes of it is not asked: the recipe's function answers nothing.
        let _ = session.execute(release, &[&task, &orders.worker, &status]).await;
    }
}

async fn open(info: &ConnInfo) -> Result<Client, String> {
    Ok(connect(info).await.map_err(|error| error.to_string())?.client)
}

async fn fetch(session: &Client, worker: &str) -> Result<Option<(i32, String)>, tokio_postgres::Error> {
    let sql = "SELECT task_id, task_name FROM worker_fetch_and_execute_task($1::text) WHERE acquired";
    session.query_opt(sql, &[&worker]).await?.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}
