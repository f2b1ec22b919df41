//! Who puts items into the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_postgres::Client;

use crate::contest::Environment;
use crate::scenario::SCHEMA;
use locktop_locks::call::CallError;
use locktop_locks::work_queue::WorkQueue;
use pg_connect::connect::connect;

/// Between two looks at the queue.
const LOOK: Duration = Duration::from_millis(500);
/// It is filled up to this many items.
const DEEP: i64 = 40;
/// Milliseconds that an item takes: at least, and at most so many more.
const WORK: (u64, u64) = (30, 500);
const SHOWN_WORK: (u64, u64) = (500, 4_000);
/// Mixed into the seed.
const SALT: u64 = 0x7175_6575_6521;

/// Kinds of items in English and in Chinese.
const KINDS: [(&str, &str); 6] = [
    ("send_welcome_email", "发送欢迎邮件"),
    ("resize_image", "缩放图片"),
    ("send_text_message", "发送短信"),
    ("index_document", "文档索引"),
    ("render_invoice", "生成发票"),
    ("notify_about_order", "订单通知"),
];

/// How an attempt at an item ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ItemEnd {
    #[default]
    Well,
    /// With an error, the first time.
    Again,
    /// With an error for good.
    Badly,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Payload {
    pub(super) milliseconds: u64,
    pub(super) ends: ItemEnd,
}

/// Goes on until it is told to end, which it does between two items.
pub(super) async fn run(environment: Environment, added: Arc<AtomicU64>, mut quit: watch::Receiver<bool>) {
    let info = environment.info.clone().with_application_name("locktop demo producer");
    let mut random = Rng::with_seed(environment.seed ^ SALT);
    while !*quit.borrow() {
        if let Ok(connection) = connect(&info).await {
            // An error is a lost server.
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
) -> Result<(), CallError> {
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

/// Removes what ended long ago: a demo may run for days.
async fn delete_old(environment: &Environment, client: &Client) -> Result<(), CallError> {
    let old = "< clock_timestamp() - interval '10 minutes'";
    let schema = environment.schema.quoted();
    let sql = format!(
        "DELETE FROM {schema}.task_queue WHERE status IN ('completed', 'failed') AND completed_at {old};
         DELETE FROM {SCHEMA}.queue_runs WHERE last {old}; DELETE FROM {SCHEMA}.queue_finishes WHERE at {old}"
    );
    let failed =
        |error: tokio_postgres::Error| CallError::Lost { what: "task_queue", reason: error.to_string() };
    client.batch_execute(&sql).await.map_err(failed)
}
