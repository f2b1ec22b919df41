//! The tables of the other lock systems on real servers: which are found, which rows are read, what that
//! costs, and what happens when they cannot be read.

mod leases;
mod limits;
mod normal_waits;
mod queue;
mod refusals;
#[path = "../tasks/stage.rs"]
mod stage;
#[path = "../../support/suite.rs"]
mod support;
mod uncommitted;
mod waits;
mod workers;

/// The tables as published.
const PRINTED: &str = include_str!("printed.sql");

/// The tables that `locktop schema install` makes.
fn own() -> String {
    locktop::schema::script(&locktop::schema::SchemaName::new("locktop").unwrap())
}

/// The number of sequential scans of a table, and how many rows that and its indexes returned.
#[derive(Debug, Clone, Copy)]
struct Scans {
    sequential: i64,
    rows: i64,
    by_index: i64,
}

/// The statistics of a table once the session that read it has ended: a session writes them then.
async fn scans(client: &tokio_postgres::Client, table: &str) -> Scans {
    let scans = "SELECT seq_scan, seq_tup_read, idx_scan,
                        (SELECT sum(idx_tup_read)::int8 FROM pg_stat_user_indexes WHERE relid = $1::text::regclass)
                   FROM pg_stat_user_tables WHERE relid = $1::text::regclass";
    let mut read = Scans { sequential: 0, rows: 0, by_index: 0 };
    support::wait_until("the statistics to be written", async || {
        client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
        let row = client.query_one(scans, &[&table]).await.unwrap();
        read = Scans { sequential: row.get(0), rows: row.get(1), by_index: row.get(3) };
        read.sequential + row.get::<_, Option<i64>>(2).unwrap_or(0) > 0
    })
    .await;
    read
}
