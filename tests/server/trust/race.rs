//! The swap (c): between the check of a table and the read of it another object takes its name.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::PollConnection;
use tokio::sync::Notify;
use tokio_postgres::Client;

use super::ground::{Ground, NAMES, is_whole, one_version};
use super::snapshots::{limits, poll_once};
use super::support::{is_long, versions};

/// How often it is swapped.
fn swaps() -> usize {
    if is_long() { 1000 } else { 40 }
}

/// Two texts that are run in turn, each a transaction.
struct Swap {
    apply: String,
    undo: String,
}

/// A view over each table, which takes its name.
async fn by_view(ground: &Ground) -> Swap {
    let (mut apply, mut undo) = (String::new(), String::new());
    for name in NAMES {
        let trap = format!(
            "CREATE VIEW {name}_trap AS SELECT * FROM {name} WHERE evil.hit('{name} swap'); GRANT SELECT ON {name}_trap TO PUBLIC"
        );
        ground.run("mallory", &trap).await;
        let plain = name.split_once('.').unwrap().1;
        apply.extend([format!(
            "ALTER TABLE {name} RENAME TO {plain}_away; ALTER VIEW {name}_trap RENAME TO {plain};"
        )]);
        undo.extend([format!(
            "ALTER VIEW {name} RENAME TO {plain}_trap; ALTER TABLE {name}_away RENAME TO {plain};"
        )]);
    }
    Swap { apply, undo }
}

/// Tables of a superuser's in schemas of mallory's, and other schemas that take their names, with views in them.
async fn by_schema(ground: &Ground) -> Swap {
    ground.tables("postgres").await;
    let (mut apply, mut undo) = (String::new(), String::new());
    let database = ground.name();
    let schemas = format!("GRANT CREATE ON DATABASE {database} TO mallory; CREATE SCHEMA locktop");
    ground.run("postgres", &schemas).await;
    for name in &NAMES[..6] {
        ground.run("postgres", &format!("ALTER TABLE {name} SET SCHEMA locktop")).await;
    }
    for schema in ["locktop", "jobs", "pgmq"] {
        let sql = format!(
            "ALTER SCHEMA {schema} OWNER TO mallory; GRANT USAGE ON SCHEMA {schema} TO PUBLIC;
             CREATE SCHEMA {schema}_trap AUTHORIZATION mallory; GRANT USAGE ON SCHEMA {schema}_trap TO PUBLIC"
        );
        ground.run("postgres", &sql).await;
        apply.extend([format!(
            "ALTER SCHEMA {schema} RENAME TO {schema}_away; ALTER SCHEMA {schema}_trap RENAME TO {schema};"
        )]);
        undo.extend([format!(
            "ALTER SCHEMA {schema} RENAME TO {schema}_trap; ALTER SCHEMA {schema}_away RENAME TO {schema};"
        )]);
    }
    for name in NAMES {
        let name = name.replace("public.", "locktop.");
        let trap = name.replace('.', "_trap.");
        let sql = format!(
            "CREATE VIEW {trap} AS SELECT * FROM {name} WHERE evil.hit('{name} swap of schemas'); GRANT SELECT ON {trap} TO PUBLIC"
        );
        ground.run("mallory", &sql).await;
    }
    Swap { apply, undo }
}

/// Row security that is enabled and disabled, which turns a copy of the table into a query of it.
async fn by_policy(ground: &Ground) -> Swap {
    let (mut apply, mut undo) = (String::new(), String::new());
    for name in NAMES {
        ground.run("mallory", &format!("CREATE POLICY p ON {name} USING (evil.hit('{name} policy'))")).await;
        apply.extend([format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;")]);
        undo.extend([format!("ALTER TABLE {name} DISABLE ROW LEVEL SECURITY;")]);
    }
    Swap { apply, undo }
}

/// Swaps until there were enough swaps, and enough polls meanwhile.
async fn keep_swapping(
    client: &Client,
    swap: &Swap,
    polls: &AtomicUsize,
    (turn, done): (&Notify, &AtomicBool),
) -> usize {
    client.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    let mut count = 0;
    while count < swaps() || polls.load(Ordering::Relaxed) < swaps() / 5 {
        if count > 50 * (polls.load(Ordering::Relaxed) + 1) {
            // More swaps would only bloat the catalogs.
            turn.notified().await;
            continue;
        }
        let sql = if count % 2 == 0 { &swap.apply } else { &swap.undo };
        // Another session reads it at the moment: try again.
        if client.batch_execute(&format!("BEGIN; {sql} COMMIT")).await.is_ok() {
            count += 1;
        } else {
            client.batch_execute("ROLLBACK").await.unwrap();
        }
    }
    done.store(true, Ordering::Relaxed);
    count
}

/// New sessions, and one that keeps polling.
async fn keep_polling(infos: &[ConnInfo], polls: &AtomicUsize, (turn, done): (&Notify, &AtomicBool)) {
    let mut session = PollConnection::open(&infos[0], limits(&[])).await.unwrap();
    let mut last = None;
    while !done.load(Ordering::Relaxed) {
        let info = &infos[polls.fetch_add(1, Ordering::Relaxed) % infos.len()];
        poll_once(info, &limits(&[])).await;
        last = Some(session.poll(last.as_ref()).await.unwrap());
        turn.notify_one();
    }
}

async fn race(ground: &Ground, swap: &Swap, roles: &[&str]) {
    let infos: Vec<ConnInfo> = roles.iter().map(|role| ground.info(role)).collect();
    let (polls, turn, done) = (AtomicUsize::new(0), Notify::new(), AtomicBool::new(false));
    let mallory = ground.client("mallory").await;
    let swapping = keep_swapping(&mallory, swap, &polls, (&turn, &done));
    let (count, ()) = tokio::join!(swapping, keep_polling(&infos, &polls, (&turn, &done)));
    let polls = polls.load(Ordering::Relaxed);
    ground.is_clean(&format!("{count} swaps during {polls} polls"));
}

fn roles(version: u32) -> Vec<&'static str> {
    if is_whole(version) { vec!["boss", "monitor", "ops"] } else { vec!["boss"] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_in_the_place_of_a_table_is_not_read() {
    for version in versions() {
        let ground = Ground::with_tables(version).await;
        let swap = by_view(&ground).await;
        race(&ground, &swap, &roles(version)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_enabled_and_disabled_in_a_race_is_not_evaluated() {
    for version in one_version() {
        let ground = Ground::with_tables(version).await;
        let swap = by_policy(&ground).await;
        race(&ground, &swap, &["monitor", "ops"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_in_the_place_of_another_is_not_read() {
    for version in one_version() {
        let ground = Ground::new(version).await;
        let swap = by_schema(&ground).await;
        race(&ground, &swap, &roles(version)).await;
    }
}
