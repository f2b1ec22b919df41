//! What statements take, by the server's own word: each form of `locktop lock-of` is run, and its locks are read.

mod command;
#[path = "../../support/suite.rs"]
mod support;

use std::collections::BTreeMap;

use locktop::model::lock::{LockMode, LockModes};
use locktop::model::statement::{Form, Statement, Take, Work, forms, statements};
use tokio_postgres::Client;

const TABLES: &str = include_str!("tables.sql");

/// What there is once a database.
const ONCE: &str = "CREATE SCHEMA other; CREATE PUBLICATION b; CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler";

/// The oldest and the newest; all in a long run.
fn versions() -> Vec<u32> {
    let all = support::versions();
    let ends = [all.first(), all.last()].into_iter().flatten().copied().collect();
    if support::is_long() { all } else { ends }
}

/// Two sessions of a database with the tables.
struct Stage {
    client: Client,
    other: Client,
    pid: i32,
    version: u32,
}

impl Stage {
    async fn of(version: u32) -> Self {
        let info = support::database(support::server_of(version).await).await;
        let (client, other) = (support::open(&info).await.client, support::open(&info).await.client);
        client.batch_execute(ONCE).await.unwrap();
        let pid = support::pid(&client).await;
        Self { client, other, pid, version }
    }

    /// The tables anew, in a schema of their own.
    async fn anew(&self, number: usize) {
        let path = format!("CREATE SCHEMA s{number}; SET search_path = s{number}, public");
        self.client.batch_execute(&format!("{path}; {TABLES}")).await.unwrap();
        self.other.batch_execute(&format!("SET search_path = s{number}, public")).await.unwrap();
    }

    async fn number(&self, sql: &str) -> Option<u32> {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn oid(&self, name: &str) -> u32 {
        let oid = self.number(&format!("SELECT to_regclass('{name}')::oid")).await;
        oid.unwrap_or_else(|| panic!("there is no {name}"))
    }

    async fn table_of(&self, index: u32) -> u32 {
        self.number(&format!("SELECT indrelid FROM pg_index WHERE indexrelid = {index}")).await.unwrap()
    }

    /// The file of a relation. Of an index its table counts; of a sequence each change is in a file of its own.
    async fn file(&self, oid: u32) -> Option<u32> {
        let sql = "SELECT relfilenode FROM pg_class WHERE relkind <> 'S'
            AND oid = coalesce((SELECT indrelid FROM pg_index WHERE indexrelid = $1), $1)";
        let row = self.client.query_opt(sql, &[&oid]).await.unwrap();
        row.map(|row| row.get(0))
    }

    /// What the session holds on relations.
    async fn held(&self) -> BTreeMap<u32, LockModes> {
        let sql = "SELECT relation, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted";
        let mut held: BTreeMap<u32, LockModes> = BTreeMap::new();
        for row in self.client.query(sql, &[]).await.unwrap() {
            let mode = LockMode::parse(row.get::<_, &str>(1).as_bytes()).unwrap();
            let modes = held.entry(row.get(0)).or_default();
            *modes = modes.union(LockModes::of(mode));
        }
        held
    }

    /// What the session waits for.
    async fn awaited(&self) -> (String, Option<u32>, Option<LockMode>) {
        let sql = "SELECT locktype, relation, mode FROM pg_locks WHERE pid = $1 AND NOT granted";
        let mut found = None;
        support::wait_until("the statement to wait", async || {
            found = self.other.query_opt(sql, &[&self.pid]).await.unwrap();
            found.is_some()
        })
        .await;
        let row = found.unwrap();
        (row.get(0), row.get(1), LockMode::parse(row.get::<_, &str>(2).as_bytes()))
    }
}

fn strongest(modes: LockModes) -> Option<LockMode> {
    modes.iter().filter(|mode| *mode != LockMode::SIRead).last()
}

/// What a statement takes: OID, mode, and what it was called.
async fn expected(stage: &Stage, takes: &[Take]) -> Vec<(u32, LockMode, String)> {
    let mut expected = Vec::new();
    for take in takes {
        let oid = stage.oid(&take.relation.to_string()).await;
        expected.push((oid, take.mode, take.relation.to_string()));
        if let Some(mode) = take.on_table_of_index {
            expected.push((stage.table_of(oid).await, mode, format!("table of {}", take.relation)));
        }
    }
    expected
}

fn known(text: &str) -> Statement {
    statements(text).remove(0).unwrap()
}

/// Whether the files of a relation are others now, as the form has it.
fn rewrites_as_said(form: &Form, before: Option<u32>, after: Option<u32>) -> bool {
    let is_new = before != after && after.is_some();
    match form.work {
        Work::Rewrites | Work::Empties => is_new,
        Work::MayRewrite | Work::Copies => true,
        Work::Catalog | Work::Rows | Work::Reads | Work::BuildsIndex => !is_new,
    }
}

/// In a transaction that is rolled back.
async fn in_transaction(stage: &Stage, form: &Form, text: &str) -> Vec<String> {
    let statement = known(text);
    let expected = expected(stage, &statement.takes).await;
    let subject = expected.first().map(|(oid, ..)| *oid);
    let before = match subject {
        Some(oid) => stage.file(oid).await,
        None => None,
    };
    stage.client.batch_execute("BEGIN").await.unwrap();
    let mut wrong = Vec::new();
    if let Err(error) = stage.client.batch_execute(text).await {
        wrong.push(format!("{text}: {}", error.as_db_error().unwrap()));
    } else {
        let held = stage.held().await;
        for (oid, mode, name) in &expected {
            // GRANT and REVOKE lock nothing before 18, as their note says.
            let is_free = stage.version < 18 && form.name.ends_with(" … ON") && !held.contains_key(oid);
            let found = held.get(oid).copied().and_then(strongest);
            if found != Some(*mode) && !is_free {
                wrong.push(format!("{text}: {name} {found:?} and not {mode:?}"));
            }
        }
        if expected.is_empty() {
            let tables = [stage.oid("t").await, stage.oid("u").await];
            wrong.extend(tables.iter().filter_map(|oid| Some(format!("{text}: {:?}", held.get(oid)?))));
        }
        if let Some(oid) = subject
            && !rewrites_as_said(form, before, stage.file(oid).await)
        {
            wrong.push(format!("{text}: not {:?}", form.work));
        }
    }
    stage.client.batch_execute("ROLLBACK").await.unwrap();
    wrong
}

/// Where it may not be in a transaction: what it waits for while another session vacuums, so to say.
async fn alone(stage: &Stage, form: &Form, text: &str, number: usize) -> Vec<String> {
    stage.anew(number).await;
    let statement = known(text);
    let expected = expected(stage, &statement.takes).await;
    // Of an index its table is locked first.
    let (oid, mode, name) = if form.on_table_of_index.is_some() { &expected[1] } else { &expected[0] };
    let table = *oid;
    let lock = async |mode: &str| {
        let table: String =
            stage.other.query_one("SELECT $1::oid::regclass::text", &[&table]).await.unwrap().get(0);
        stage.other.batch_execute(&format!("BEGIN; LOCK TABLE {table} IN {mode} MODE")).await.unwrap();
    };
    // In the way of what it takes, and not of what it takes for a moment to look at the table.
    lock("SHARE UPDATE EXCLUSIVE").await;
    let mut wrong = Vec::new();
    let running = stage.client.batch_execute(text);
    let watching = async {
        let (kind, relation, awaited) = stage.awaited().await;
        if kind != "relation" || relation != Some(table) || awaited != Some(*mode) {
            wrong.push(format!(
                "{text}: waits for {awaited:?} on {kind} {relation:?}, not for {mode:?} on {name} {table}"
            ));
        }
        stage
            .other
            .batch_execute("SELECT pg_cancel_backend($1)".replace("$1", &stage.pid.to_string()).as_str())
            .await
            .unwrap();
        stage.other.batch_execute("ROLLBACK").await.unwrap();
    };
    let (ended, ()) = tokio::join!(running, watching);
    assert!(ended.is_err(), "{text} was not cancelled");
    if let Some(mode) = form.waits_for {
        // A mode that is not in the way of what it takes, but has it wait all the same.
        lock(if mode == LockMode::Share { "ROW EXCLUSIVE" } else { "ACCESS SHARE" }).await;
        let watching = async {
            let (kind, ..) = stage.awaited().await;
            if kind != "virtualxid" && kind != "transactionid" {
                wrong.push(format!("{text}: waits for {kind}"));
            }
            stage.other.batch_execute("ROLLBACK").await.unwrap();
        };
        let (ended, ()) = tokio::join!(stage.client.batch_execute(text), watching);
        wrong.extend(ended.err().map(|error| format!("{text}: {}", error.as_db_error().unwrap())));
    } else {
        let before = stage.file(table).await;
        let ended = stage.client.batch_execute(text).await;
        wrong.extend(ended.err().map(|error| format!("{text}: {}", error.as_db_error().unwrap())));
        if !rewrites_as_said(form, before, stage.file(table).await) {
            wrong.push(format!("{text}: not {:?}", form.work));
        }
    }
    wrong
}

#[tokio::test]
async fn each_form_takes_what_the_table_says() {
    for version in versions() {
        let stage = Stage::of(version).await;
        stage.anew(0).await;
        let mut wrong = Vec::new();
        let all: Vec<_> = forms().into_iter().filter(|(_, text)| !text.is_empty()).collect();
        for (form, text) in all.iter().filter(|(form, _)| !form.alone) {
            if form.since > stage.version {
                stage.client.batch_execute("BEGIN").await.unwrap();
                if stage.client.batch_execute(text).await.is_ok() {
                    wrong.push(format!("{text}: {version} has it"));
                }
                stage.client.batch_execute("ROLLBACK").await.unwrap();
            } else {
                wrong.extend(in_transaction(&stage, form, text).await);
            }
        }
        let apart = all.iter().filter(|(form, _)| form.alone && form.since <= version);
        for (number, (form, text)) in apart.enumerate() {
            wrong.extend(alone(&stage, form, text, number + 1).await);
        }
        assert!(wrong.is_empty(), "on {version}:\n{}", wrong.join("\n"));
    }
}
