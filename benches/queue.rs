//! Items a second through locktop's work queue, compared with the recipe in `tests/server/locks_sql/article.sql`.
//!
//! `cargo bench --bench queue` starts its own server (`LOCKTOP_BENCH_ITEMS`, `LOCKTOP_BENCH_WORKERS`). An item has no
//! work: the claim and the completion of an item are measured, with the round trips that each system needs. locktop
//! commits twice for an item. The recipe commits once, and does not return an item to the queue when its worker dies.
//! The server runs without fsync, so a commit costs little here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::pg::connect::{Connection, connect};
use locktop::pg::conninfo::ConnInfo;
use locktop::schema::{self, SchemaName};
use locktop::tasks::work_queue::{AttemptEnd, WorkQueue};

const ROUNDS: usize = 5;
const ARTICLE: &str = include_str!("../tests/server/locks_sql/article.sql");

#[derive(Debug, Clone, Copy)]
enum System {
    Locktop,
    Printed,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

async fn measure() {
    let (items, workers) = (number("LOCKTOP_BENCH_ITEMS", 4000), number("LOCKTOP_BENCH_WORKERS", 8));
    let server = EmbeddedServer::start(Options::default()).await.unwrap();
    let info = ConnInfo::parse(&server.conninfo()).unwrap();
    let mut admin = connect(&info).await.unwrap();
    schema::install(&mut admin.client, &SchemaName::default()).await.unwrap();
    for name in ["queue_table", "consume"] {
        let block =
            ARTICLE.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap();
        // The article looks for a table of this name in every schema, and locktop has one too. The second change is the
        // minimum that makes the function run.
        let block = block.replace("table_name = 'task_queue'", "table_schema = 'public'");
        let block = block.replace("AS $$\n", "AS $$\n#variable_conflict use_column\n");
        admin.client.batch_execute(&block).await.unwrap();
    }
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let locktop = rate(System::Locktop, &admin, &info, items, workers).await;
        let printed = rate(System::Printed, &admin, &info, items, workers).await;
        println!("round {}: locktop {locktop:.0} items/s, printed {printed:.0} items/s", round + 1);
        ratios.push(locktop / printed);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{items} items, {workers} workers: locktop is {:.2} times as fast as the printed recipe (median of {ROUNDS}, {:.2} to {:.2})",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1]
    );
}

async fn rate(system: System, admin: &Connection, info: &ConnInfo, items: usize, workers: usize) -> f64 {
    let table = match system {
        System::Locktop => "locktop.task_queue",
        System::Printed => "public.task_queue",
    };
    let fill = format!(
        "TRUNCATE {table}; INSERT INTO {table} (task_name, payload) SELECT 'x', '{{}}' FROM generate_series(1, {items})"
    );
    admin.client.batch_execute(&fill).await.unwrap();
    admin.client.batch_execute(&format!("VACUUM ANALYZE {table}")).await.unwrap();
    let mut connections = Vec::new();
    for _ in 0..workers {
        connections.push(connect(info).await.unwrap());
    }
    let left = Arc::new(AtomicUsize::new(items));
    let started = clock::monotonic();
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|connection| {
            let left = Arc::clone(&left);
            tokio::spawn(async move {
                while left.load(Ordering::Relaxed) > 0 {
                    let done = match system {
                        System::Locktop => locktop(&connection).await,
                        System::Printed => printed(&connection).await,
                    };
                    left.fetch_sub(usize::from(done), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let seconds = clock::monotonic().duration_since(started).as_secs_f64();
    let completed = format!("SELECT count(*) FROM {table} WHERE status = 'completed'");
    let completed: i64 = admin.client.query_one(&completed, &[]).await.unwrap().get(0);
    assert_eq!(usize::try_from(completed).unwrap(), items);
    f64::from(u32::try_from(items).unwrap()) / seconds
}

async fn locktop(connection: &Connection) -> bool {
    let queue = WorkQueue::default();
    let Some(item) = queue.claim(&connection.client, "w").await.unwrap() else { return false };
    assert!(queue.finish(&connection.client, &item, &AttemptEnd::Completed).await.unwrap());
    true
}

/// The same steps as the printed Python, whose driver begins the transaction with the first statement.
async fn printed(connection: &Connection) -> bool {
    let client = &connection.client;
    client.batch_execute("BEGIN").await.unwrap();
    let rows = client.query_typed("SELECT * FROM public.consume_task()", &[]).await.unwrap();
    let Some(row) = rows.first() else {
        client.batch_execute("COMMIT").await.unwrap();
        return false;
    };
    let id: i64 = row.get(0);
    let end = "UPDATE public.task_queue SET status = 'completed', completed_at = now() WHERE id = $1";
    let id = [(&id as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::INT8)];
    client.execute_typed(end, &id).await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    client.query_typed("SELECT pg_advisory_unlock($1)", &id).await.unwrap();
    true
}
