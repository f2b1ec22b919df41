//! The swap (c): between the look at a table and the reading of it something else takes its place, by name.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::Session;
use tokio::sync::Notify;
use tokio_postgres::Client;

use super::ground::{Ground, NAMES, is_whole, one_version};
use super::looks::{limits, look};
use super::support::{is_long, versions};

/// How often it is swapped.
fn swaps() -> usize {
    if is_long() { 1000 } else { 40 }
}

/// Two texts that are run in turn, each a transaction.
struct Swap {
    there: String,
    back: String,
}

/// A view over each table, which takes its name.
async fn by_view(ground: &Ground) -> Swap {
    let (mut there, mut back) = (String::new(), String::new());
    for name in NAMES {
        let trap = format!(
            "CREATE VIEW {name}_trap AS SELECT * FROM {name} WHERE evil.hit('{name} swap'); GRANT SELECT ON {name}_trap TO PUBLIC"
        );
        ground.run("mallory", &trap).await;
        let plain = name.split_once('.').unwrap().1;
        there.extend([format!(
            "ALTER TABLE {name} RENAME TO {plain}_away; ALTER VIEW {name}_trap RENAME TO {plain};"
        )]);
        back.extend([format!(
            "ALTER VIEW {name} RENAME TO {plain}_trap; ALTER TABLE {name}_away RENAME TO {plain};"
        )]);
    }
    Swap { there, back }
}

/// Tables of a superuser's in schemas of mallory's, and other schemas that take their names, with views in them.
async fn by_schema(ground: &Ground) -> Swap {
    ground.tables("postgres").await;
    let (mut there, mut back) = (String::new(), String::new());
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
        there.extend([format!(
            "ALTER SCHEMA {schema} RENAME TO {schema}_away; ALTER SCHEMA {schema}_trap RENAME TO {schema};"
        )]);
        back.extend([format!(
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
    Swap { there, back }
}

/// A policy that comes and goes, which makes of a copy of the table a query of it.
async fn by_policy(ground: &Ground) -> Swap {
    let (mut there, mut back) = (String::new(), String::new());
    for name in NAMES {
        ground.run("mallory", &format!("CREATE POLICY p ON {name} USING (evil.hit('{name} policy'))")).await;
        there.extend([format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;")]);
        back.extend([format!("ALTER TABLE {name} DISABLE ROW LEVEL SECURITY;")]);
    }
    Swap { there, back }
}

/// Swaps until that was done often enough, and looked at often enough meanwhile.
async fn keep_swapping(
    client: &Client,
    swap: &Swap,
    looked: &AtomicUsize,
    (turn, done): (&Notify, &AtomicBool),
) -> usize {
    client.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    let mut count = 0;
    while count < swaps() || looked.load(Ordering::Relaxed) < swaps() / 5 {
        if count > 50 * (looked.load(Ordering::Relaxed) + 1) {
            // Its catalogs would be full of what was, and nobody would be any the wiser.
            turn.notified().await;
            continue;
        }
        let sql = if count % 2 == 0 { &swap.there } else { &swap.back };
        // Somebody reads it at the moment: once more.
        if client.batch_execute(&format!("BEGIN; {sql} COMMIT")).await.is_ok() {
            count += 1;
        } else {
            client.batch_execute("ROLLBACK").await.unwrap();
        }
    }
    done.store(true, Ordering::Relaxed);
    count
}

/// Sessions that begin, and one that goes on.
async fn keep_looking(infos: &[ConnInfo], looked: &AtomicUsize, (turn, done): (&Notify, &AtomicBool)) {
    let mut session = Session::open(&infos[0], limits(&[])).await.unwrap();
    let mut last = None;
    while !done.load(Ordering::Relaxed) {
        let info = &infos[looked.fetch_add(1, Ordering::Relaxed) % infos.len()];
        look(info, &limits(&[])).await;
        last = Some(session.poll(last.as_ref()).await.unwrap());
        turn.notify_one();
    }
}

async fn race(ground: &Ground, swap: &Swap, roles: &[&str]) {
    let infos: Vec<ConnInfo> = roles.iter().map(|role| ground.info(role)).collect();
    let (looked, turn, done) = (AtomicUsize::new(0), Notify::new(), AtomicBool::new(false));
    let mallory = ground.client("mallory").await;
    let swapping = keep_swapping(&mallory, swap, &looked, (&turn, &done));
    let (count, ()) = tokio::join!(swapping, keep_looking(&infos, &looked, (&turn, &done)));
    let looked = looked.load(Ordering::Relaxed);
    ground.is_clean(&format!("{count} swaps during {looked} looks"));
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
async fn a_policy_that_comes_and_goes_is_not_asked() {
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
