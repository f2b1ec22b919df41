//! A process that works off the queue. What it says of an item it writes in the transaction that ends it.

use std::time::Duration;

use tokio_postgres::Client;

use super::producer::{Ends, Payload};
use crate::demo::scenario::SCHEMA;
use crate::demo::tasks::Orders;
use crate::locks::call::CallError;
use crate::locks::work_queue::{End, Item, WorkQueue};
use crate::pg::connect::connect;
use crate::pg::conninfo::ConnInfo;
use crate::schema::SchemaName;

/// Between two looks while nothing is there.
const IDLE: Duration = Duration::from_millis(200);
/// From one sign of life to the next.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// After so many items one looks for what others have lost, as it does when there is nothing to do.
const ROUND: u64 = 5;

/// Works until it is dropped.
///
/// # Errors
/// When its orders are none.
pub(in crate::demo) async fn run(orders: &Orders) -> Result<(), String> {
    let info = ConnInfo::parse(&orders.conninfo).map_err(|error| error.to_string())?;
    let info = info.with_application_name(&orders.worker);
    let schema = SchemaName::new(&orders.schema).map_err(|error| error.to_string())?;
    let consumer = Consumer { queue: WorkQueue { schema }, name: orders.worker.clone() };
    loop {
        if let Ok(connection) = connect(&info).await {
            // An error is a lost server. What was under way is lost with the session, and others get it.
            let _ = consumer.work(connection.client).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

struct Consumer {
    queue: WorkQueue,
    name: String,
}

impl Consumer {
    async fn work(&self, mut client: Client) -> Result<(), CallError> {
        let mut items = 0_u64;
        loop {
            let item = self.queue.claim(&client, &self.name).await?;
            if item.is_none() || items.is_multiple_of(ROUND) {
                self.queue.requeue_lost(&client, &self.name, 10).await?;
            }
            items += 1;
            match item {
                Some(item) => self.attempt(&mut client, &item).await?,
                None => tokio::time::sleep(IDLE).await,
            }
        }
    }

    async fn attempt(&self, client: &mut Client, item: &Item) -> Result<(), CallError> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.queue_attempts (item, attempt, worker) VALUES ($1, $2, $3) RETURNING n"
        );
        let row = client.query_one(&sql, &[&item.id, &item.attempt, &self.name]).await.map_err(told)?;
        let attempt: i64 = row.try_get(0).map_err(told)?;
        let payload = item.payload::<Payload>().unwrap_or(Payload { milliseconds: 0, ends: Ends::Badly });
        let mut left = Duration::from_millis(payload.milliseconds);
        while left > HEARTBEAT {
            tokio::time::sleep(HEARTBEAT).await;
            left -= HEARTBEAT;
            self.queue.heartbeat(client, &self.name).await?;
        }
        tokio::time::sleep(left).await;
        let end = match payload.ends {
            Ends::Again if item.attempt == 1 => End::Again("SMTP 451: try again later".to_owned()),
            Ends::Well | Ends::Again => End::Completed,
            Ends::Badly => End::Failed("图片损坏".to_owned()),
        };
        self.finish(client, item, attempt, &end).await
    }

    /// What only one may do is done in the transaction that ends the item.
    async fn finish(
        &self,
        client: &mut Client,
        item: &Item,
        attempt: i64,
        end: &End,
    ) -> Result<(), CallError> {
        let transaction = client.transaction().await.map_err(told)?;
        if self.queue.finish(&transaction, item, end).await? {
            if *end == End::Completed {
                let sql = format!(
                    "INSERT INTO {SCHEMA}.queue_finishes (item, attempt, worker) VALUES ($1, $2, $3)"
                );
                transaction.execute(&sql, &[&item.id, &item.attempt, &self.name]).await.map_err(told)?;
            }
        } else {
            let sql = format!("UPDATE {SCHEMA}.queue_attempts SET refused = true WHERE n = $1");
            transaction.execute(&sql, &[&attempt]).await.map_err(told)?;
        }
        transaction.commit().await.map_err(told)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn told(error: tokio_postgres::Error) -> CallError {
    CallError::Lost { what: "an item", reason: error.to_string() }
}
