use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_postgres::Client;

use crate::contest::Environment;
use crate::scenario::SCHEMA;
use locktop_locks::Error;
use locktop_tasks::work_queue::WorkQueue;
use pg_connect::connect::connect;

const LOOK: Duration = Duration::from_millis(500);
const DEEP: i64 = 40;
/// Milliseconds that an item takes: the minimum, and the most that is added to it.
const WORK: (u64, u64) = (30, 500);
const SHOWN_WORK: (u64, u64) = (500, 4_000);
const SALT: u64 = 0x7175_6575_6521;

const KINDS: [(&str, &str); 6] = [
    ("send_welcome_email", "发送欢迎邮件"),
    ("resize_image", "缩放图片"),
    ("send_text_message", "发送短信"),
    ("index_document", "文档索引"),
    ("render_invoice", "生成发票"),
    ("notify_about_order", "订单通知"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ItemEnd {
    #[default]
    Well,
    /// With an error, at the first attempt.
    Again,
    /// With a permanent error.
    Badly,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Payload {
    pub(super) milliseconds: u64,
    pub(super) ends: ItemEnd,
}

/// Runs until it is requested to end, which it checks between two items.
pub(super) async fn run(environment: Environment, added: Arc<AtomicU64>, mut quit: watch::Receiver<bool>) {
    let info = environment.info.clone().with_application_name("locktop demo producer");
    let mut random = Rng::with_seed(environment.seed ^ SALT);
    while !*quit.borrow() {
        if let Ok(connection) = connect(&info).await {
            // An error means that the server is lost.
            let _ = fill(&environment, &connection.client, &mut random, &added, &mut quit).await;
        }
        rest(&mut quit).await;
    }
}

async fn rest(quit: &mut watch::Receiver<bool>) {
    let _ = tokio::time::timeout(LOOK, quit.wait_for(|quit| *quit)).await;
}

async fn fill(
    environment: &Environment,
    client: &Client,
    random: &mut Rng,
    added: &AtomicU64,
    quit: &mut watch::Receiver<bool>,
) -> Result<(), Error> {
    let queue = WorkQueue { schema: environment.schema.clone() };
    let (least, more) = if environment.headless { WORK } else { SHOWN_WORK };
    while !*quit.borrow() {
        let pending = queue.depth(client).await?.pending;
        for _ in pending..DEEP {
            if *quit.borrow() {
                break;
            }
            let ends = match random.u64(..20) {
                0 => ItemEnd::Badly,
                1 | 2 => ItemEnd::Again,
                _ => ItemEnd::Well,
            };
            let payload = Payload { milliseconds: least + random.u64(..more), ends };
            let kind = random.choice(KINDS).unwrap_or_default();
            queue.add(client, environment.config.plan.language.of(kind), &payload).await?;
            added.fetch_add(1, Ordering::SeqCst);
        }
        if !environment.headless {
            delete_old(environment, client).await?;
        }
        rest(quit).await;
    }
    Ok(())
}

async fn delete_old(environment: &Environment, client: &Client) -> Result<(), Error> {
    let old = "< clock_timestamp() - interval '10 minutes'";
    let schema = environment.schema.quoted();
    let sql = format!(
        "DELETE FROM {schema}.task_queue WHERE status IN ('completed', 'failed') AND completed_at {old};
         DELETE FROM {SCHEMA}.queue_runs WHERE last {old}; DELETE FROM {SCHEMA}.queue_finishes WHERE at {old}"
    );
    let failed = |error: tokio_postgres::Error| Error::Disconnected {
        what: "task_queue".to_owned(),
        reason: error.to_string(),
    };
    client.batch_execute(&sql).await.map_err(failed)
}
