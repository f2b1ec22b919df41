//! The gate for large tables: if an index of a query is dropped, another query is used, or none, but no query
//! reads the whole table.

use locktop::model::adapter::{Installation, Part};

use super::{GOOD_JOB, RIVER, SOLID_QUEUE, all, client, database, one, run, support};
use tokio_postgres::Client;

fn rows() -> usize {
    if support::is_long() { 1_000_000 } else { 150_000 }
}

/// Rows as in a running system: most jobs are done, a few run.
fn fill(table: &str) -> String {
    let rows = rows();
    match table {
        "good_jobs" => format!(
            "INSERT INTO good_jobs (queue_name, job_class, executions_count, serialized_params, scheduled_at, performed_at, finished_at, error, locked_by_id, lock_type)
             SELECT 'q' || n % 5, 'J', 1, '{{\"job_class\": \"J\", \"executions\": 1}}', now() - n * interval '1 s',
                    CASE WHEN n > 3000 OR n <= 40 THEN now() - n * interval '1 s' END,
                    CASE WHEN n > 3000 THEN now() - n * interval '1 s' END, CASE WHEN n % 1000 = 0 THEN 'no' END,
                    CASE WHEN n <= 40 THEN gen_random_uuid() END, CASE WHEN n <= 40 THEN 1 END FROM generate_series(1, {rows}) AS n;"
        ),
        "solid_queue_jobs" => format!(
            "INSERT INTO solid_queue_jobs (queue_name, class_name, finished_at)
             SELECT 'q' || n % 5, 'J', CASE WHEN n <= {rows} - 60000 THEN now() END FROM generate_series(1, {rows}) AS n;
             INSERT INTO solid_queue_claimed_executions (job_id, process_id) SELECT {rows} - n, n % 3 FROM generate_series(0, 29) AS n;
             INSERT INTO solid_queue_ready_executions (job_id, queue_name) SELECT {rows} - n, 'q' FROM generate_series(100, 59999) AS n;"
        ),
        _ => format!(
            "INSERT INTO river_job (kind, state, attempt, attempted_at, attempted_by, finalized_at, queue)
             SELECT 'k', (CASE WHEN n <= 100 THEN 'running' WHEN n <= 30000 THEN 'available' WHEN n % 1000 = 0 THEN 'discarded' ELSE 'completed' END)::river_job_state,
                    1, now(), ARRAY['host'], CASE WHEN n > 30000 THEN now() END, 'q' || n % 5 FROM generate_series(1, {rows}) AS n;"
        ),
    }
}

/// Sequential scans of a table so far. A session reports its own when it ends, within the second.
async fn scans(client: &Client, table: &str) -> i64 {
    let others =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    support::wait_until("the sessions of the test to end", async || {
        client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    // Up to 14 a separate process counts, and publishes the counts in files with a timestamp.
    let ended: String = client.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap().get(0);
    let fresh = "SELECT coalesce(pg_stat_get_snapshot_timestamp() > $1::text::timestamptz, true)";
    support::wait_until("their statistics to be counted", async || {
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        client.query_one(fresh, &[&ended]).await.unwrap().get(0)
    })
    .await;
    let sql = "SELECT seq_scan FROM pg_stat_user_tables WHERE relid = $1::text::regclass";
    client.query_one(sql, &[&table]).await.unwrap().get(0)
}

fn uses(installation: &Installation, part: Part) -> Option<usize> {
    installation.choice(part)?.used().map(|used| used.number)
}

async fn with_every_index_dropped(ddl: &str, table: &str, parts: &[Part]) {
    let info = database(&format!("{ddl}{}", fill(table))).await;
    let admin = client(&info).await;
    run(&info, "VACUUM ANALYZE").await;
    let whole = one(&info, &all()).await;
    for part in parts {
        assert!(uses(&whole, *part).is_some(), "{part:?}: {:?}", whole.choice(*part));
    }
    are_read_by_index(&whole, "with all of them");
    let sql = "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), c.conname
        FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid WHERE i.indrelid = $1::text::regclass";
    for row in admin.query(sql, &[&table]).await.unwrap() {
        let (index, definition, constraint): (String, String, Option<String>) =
            (row.get(0), row.get(1), row.get(2));
        let (drop, again) = match constraint {
            Some(name) => (
                format!("ALTER TABLE {table} DROP CONSTRAINT {name}"),
                format!("ALTER TABLE {table} ADD CONSTRAINT {name} PRIMARY KEY (id)"),
            ),
            None => (format!("DROP INDEX {index}"), definition),
        };
        run(&info, &drop).await;
        let before = scans(&admin, table).await;
        let without = one(&info, &all()).await;
        are_read_by_index(&without, &format!("without {index}"));
        let after = scans(&admin, table).await;
        assert_eq!(before, after, "without {index} all of {table} was read: {without:?}");
        println!("without {index}: {:?}", parts.iter().map(|part| uses(&without, *part)).collect::<Vec<_>>());
        run(&info, &again).await;
    }
}

/// The queries in use were read, and in time.
fn are_read_by_index(installation: &Installation, what: &str) {
    for choice in &installation.choices {
        let read = choice.used().and_then(|used| used.read.clone());
        assert!(read.is_none_or(|read| read.is_ok()), "{what}: {choice:?}");
    }
}

#[tokio::test]
async fn good_job_without_any_of_its_indexes() {
    with_every_index_dropped(
        GOOD_JOB,
        "good_jobs",
        &[Part::Running, Part::Due, Part::Scheduled, Part::Failed, Part::Depth],
    )
    .await;
}

#[tokio::test]
async fn solid_queue_without_any_of_its_indexes() {
    with_every_index_dropped(
        SOLID_QUEUE,
        "solid_queue_jobs",
        &[Part::Running, Part::Due, Part::Failed, Part::Depth],
    )
    .await;
}

#[tokio::test]
async fn river_without_any_of_its_indexes() {
    with_every_index_dropped(
        RIVER,
        "river_job",
        &[Part::Running, Part::Due, Part::Scheduled, Part::Failed, Part::Depth],
    )
    .await;
}
