//! Each statement of the list on real servers: `pg_locks` shows the locks that the list has, and that `locktop lock-of` reports.
//!
//! `LOCKTOP_ACCEPT=1` rewrites the list, from all versions.

use std::collections::{BTreeMap, BTreeSet};

use locktop::model::lock::{LockMode, LockModes};
use locktop::model::lock_of::{TakenKey, Want, wants};
use locktop::model::statement::{Role, Statement, StatementPiece, StatementWork, statements};
use locktop::output::lock_of::targets;
use locktop::pg::lock_of::places;
use tokio_postgres::Client;

use super::list::{Entry, FAILS, read, write};
use super::support;

const ONCE: &str = include_str!("once.sql");
const TABLES: &str = include_str!("tables.sql");
const OBSERVED: &str = include_str!("observed.sql");
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/lock_of/statements.txt");

/// How many statements may differ, each with its reason.
const DIFFER: usize = 10;

/// The newest; all in a long run.
pub(super) fn versions() -> Vec<u32> {
    if support::is_long() || accepts() {
        return support::all_versions();
    }
    support::all_versions().last().copied().into_iter().collect()
}

fn accepts() -> bool {
    std::env::var_os("LOCKTOP_ACCEPT").is_some()
}

/// A row of `observed.sql`.
struct Row {
    mode: LockMode,
    kind: String,
    name: String,
    table: Option<i64>,
    oid: i64,
    schema: Option<i64>,
}

/// Two sessions of a database with the tables: one runs the statements, the other one blocks it and reads its locks.
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
        client.batch_execute("CREATE ROLE helper").await.unwrap();
        client.batch_execute("CREATE DATABASE tmpl").await.unwrap();
        client.batch_execute(ONCE).await.unwrap();
        client.batch_execute(TABLES).await.unwrap();
        let pid = support::pid(&client).await;
        Self { client, other, pid, version }
    }

    async fn named(&self, locks: &str) -> BTreeSet<String> {
        let rows = self.other.query(&OBSERVED.replace("$locks", locks), &[]).await.unwrap();
        let rows = rows.iter().map(|row| Row {
            mode: LockMode::parse(row.get::<_, &str>(0).as_bytes()).unwrap(),
            kind: row.get(1),
            name: row.get(2),
            table: row.get(3),
            oid: row.get(4),
            schema: row.get(5),
        });
        normal(&rows.collect::<Vec<_>>())
    }

    /// The locks that the session holds and waits for.
    async fn observed(&self) -> BTreeSet<String> {
        let key = "CASE objsubid WHEN 1 THEN ((classid::int8 << 32) | objid::int8)::text
            ELSE format('(%s, %s)', classid::int8 - (classid::int8 >> 31 << 32), objid::int8 - (objid::int8 >> 31 << 32)) END";
        let locks = format!(
            "SELECT CASE locktype WHEN 'relation' THEN 1259::oid WHEN 'object' THEN classid ELSE 0::oid END,
                    CASE locktype WHEN 'relation' THEN relation ELSE objid END, mode, {key}
               FROM pg_locks WHERE pid = {} AND locktype IN ('relation', 'object', 'advisory') AND ({key} <> '4242' OR locktype <> 'advisory')",
            self.pid
        );
        self.named(&locks).await
    }

    /// The report of `lock-of`: the locks that the statement certainly takes, and all that it can take.
    async fn reported(&self, statement: &Statement) -> (BTreeSet<String>, BTreeSet<String>) {
        let piece = || statements_of(statement);
        let targets = targets(&piece());
        let places = places(&self.other, &targets).await.unwrap();
        let mut all = Vec::new();
        for take in &statement.takes {
            let at = targets.iter().position(|target| *target == take.target).unwrap();
            let found = wants(statement, take, &places[at], self.version);
            all.extend(found.iter().filter_map(|want| Some((is_certain(statement, want), row(want)?))));
        }
        let rows = |certain: bool| {
            let rows = all.iter().filter(|(is, _)| *is || !certain).map(|(_, row)| row.clone());
            rows.collect::<Vec<_>>().join(", ")
        };
        let mut sets = Vec::new();
        for rows in [rows(true), rows(false)] {
            let none = "SELECT 0::oid, 0::oid, ''::text, ''::text WHERE false".to_owned();
            let values = if rows.is_empty() { none } else { format!("VALUES {rows}") };
            sets.push(self.named(&values).await);
        }
        let can = sets.pop().unwrap();
        (sets.pop().unwrap(), can)
    }

    /// The file of a relation; for an index that of its table. For a sequence each change is in a file of its own.
    async fn file(&self, name: &str) -> Option<u32> {
        let sql = "SELECT relfilenode FROM pg_class WHERE relkind <> 'S' AND relfilenode <> 0
            AND oid = coalesce((SELECT indrelid FROM pg_index WHERE indexrelid = to_regclass($1)), to_regclass($1))";
        let row = self.client.query_opt(sql, &[&name]).await.unwrap();
        row.map(|row| row.get(0))
    }

    /// The locks in a transaction that is rolled back; and a message if the form does not agree with the
    /// server on whether the table gets a new file.
    async fn in_transaction(&self, entry: &Entry) -> (BTreeSet<String>, Option<String>) {
        let statement = statements(&entry.text).pop().and_then(|piece| piece.read.ok());
        let subject = statement.as_ref().and_then(|statement| {
            let take = statement.takes.iter().find(|take| take.is_subject)?;
            Some((
                take.relation()?.to_string(),
                statement.forms.iter().map(|form| form.work).collect::<Vec<_>>(),
            ))
        });
        let before = match &subject {
            Some((name, _)) => self.file(name).await,
            None => None,
        };
        self.client.batch_execute("BEGIN").await.unwrap();
        for sql in &entry.before {
            self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
        let ran = self.client.batch_execute(&entry.text).await;
        let found = match ran {
            Ok(()) => self.observed().await,
            Err(_) => [FAILS.to_owned()].into(),
        };
        let wrong = match &subject {
            Some((name, works)) if !found.contains(FAILS) => {
                let after = self.file(name).await;
                let is_new = before.is_some() && after.is_some() && before != after;
                let must =
                    works.iter().any(|work| matches!(work, StatementWork::Rewrites | StatementWork::Empties));
                let can = must
                    || works
                        .iter()
                        .any(|work| matches!(work, StatementWork::MayRewrite | StatementWork::Copies));
                (must && !is_new && after.is_some() || is_new && !can)
                    .then(|| format!("{works:?}, new file: {is_new}"))
            }
            _ => None,
        };
        self.client.batch_execute("ROLLBACK").await.unwrap();
        self.client
            .batch_execute("SELECT pg_advisory_unlock_all(); RESET ALL; RESET ROLE; DEALLOCATE ALL")
            .await
            .unwrap();
        (found, wrong)
    }

    /// With each obstacle in turn: the locks that it holds and waits for. It is cancelled then.
    async fn alone(&self, entry: &Entry) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for obstacle in &entry.obstacles {
            self.other
                .batch_execute(&format!("BEGIN; {obstacle}"))
                .await
                .unwrap_or_else(|error| panic!("{obstacle}: {error:?}"));
            let watching = async {
                let waits =
                    format!("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {} AND NOT granted)", self.pid);
                support::wait_until(&format!("{} to wait", entry.text), async || {
                    self.other.query_one(&waits, &[]).await.unwrap().get(0)
                })
                .await;
                found.extend(self.observed().await);
                self.other.batch_execute(&format!("SELECT pg_cancel_backend({})", self.pid)).await.unwrap();
            };
            let (ended, ()) = tokio::join!(self.client.batch_execute(&entry.text), watching);
            assert!(ended.is_err(), "{} was not cancelled", entry.text);
            self.other.batch_execute("ROLLBACK; SELECT pg_advisory_unlock_all()").await.unwrap();
            for sql in &entry.after {
                self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            }
        }
        strongest_of_each(found)
    }
}

/// A statement as the pieces of a text.
fn statements_of(statement: &Statement) -> Vec<StatementPiece> {
    vec![StatementPiece { line: 1, read: Ok(statement.clone()) }]
}

/// Whether the lock does not depend on the rows that a query finds.
fn is_certain(statement: &Statement, want: &Want<'_>) -> bool {
    !want.is_open(statement)
        && !want.other.is_some_and(|other| other.role == Role::Indexes && statement.is_query())
}

fn row(want: &Want<'_>) -> Option<String> {
    let mode = want.mode.as_str();
    Some(match want.key {
        TakenKey::Relation(oid) => format!("(1259::oid, {oid}::oid, '{mode}', '')"),
        TakenKey::Object(_, 0) => return None,
        TakenKey::Object(class, oid) => format!("({class}::oid, {oid}::oid, '{mode}', '')"),
        TakenKey::Advisory(key) => format!("(0::oid, 0::oid, '{mode}', '{key}')"),
    })
}

/// The strongest mode of each; an index that its table's lock covers, and the schema of a relation that is locked, left out.
fn normal(rows: &[Row]) -> BTreeSet<String> {
    let stops = |mode: LockMode| {
        LockMode::ALL
            .into_iter()
            .filter(|other| other.conflicts_with(LockModes::of(mode)))
            .collect::<Vec<_>>()
    };
    let covers = |index: &Row| {
        rows.iter().any(|of| {
            index.table == Some(of.oid)
                && of.kind != "index"
                && stops(index.mode).iter().all(|mode| stops(of.mode).contains(mode))
        })
    };
    let has_relation = |schema: &Row| {
        schema.kind == "schema"
            && schema.mode == LockMode::AccessShare
            && rows.iter().any(|of| of.schema == Some(schema.oid))
    };
    let kept = rows.iter().filter(|row| !(has_relation(row) || row.kind == "index" && covers(row)));
    strongest_of_each(kept.map(|row| format!("{} {} {}", row.mode.short(), row.kind, row.name)).collect())
}

fn strongest_of_each(locks: BTreeSet<String>) -> BTreeSet<String> {
    let mut strongest: BTreeMap<String, LockMode> = BTreeMap::new();
    for lock in locks {
        let (mode, on) = lock.split_once(' ').unwrap();
        let mode = LockMode::parse(format!("{mode}Lock").as_bytes()).unwrap();
        let one = strongest.entry(on.to_owned()).or_insert(mode);
        *one = (*one).max(mode);
    }
    strongest.into_iter().map(|(on, mode)| format!("{} {on}", mode.short())).collect()
}

/// The differences between the server and `lock-of`.
async fn compared(stage: &Stage, entry: &Entry, observed: &BTreeSet<String>) -> Option<String> {
    let mut read = statements(&entry.text);
    let statement = match read.pop().map(|piece| piece.read) {
        Some(Ok(statement)) if read.is_empty() => statement,
        other => return Some(format!("{other:?}")),
    };
    if observed.contains(FAILS) {
        return (statement.since() <= stage.version).then(|| "the server refuses it".to_owned());
    }
    let (certain, can) = stage.reported(&statement).await;
    let missing: Vec<&String> = observed.difference(&can).filter(|lock| !certain.contains(*lock)).collect();
    let wrong: Vec<&String> = certain.difference(observed).collect();
    // Locks that are not known are not reported.
    let missing = if statement.unseen.is_empty() { missing } else { Vec::new() };
    (!missing.is_empty() || !wrong.is_empty()).then(|| format!("not reported: {missing:?}, wrong: {wrong:?}"))
}

#[tokio::test]
async fn lock_of_reports_the_locks_that_statements_take() {
    let list = std::fs::read_to_string(PATH).unwrap();
    let entries = read(&list);
    assert!(entries.len() >= 250 && entries.iter().filter(|entry| entry.is_ddl()).count() >= 200);
    let (mut all, mut wrong) = (BTreeMap::new(), Vec::new());
    let mut differ: BTreeSet<&str> = BTreeSet::new();
    for version in versions() {
        let stage = Stage::of(version).await;
        let mut of_version = Vec::new();
        for entry in &entries {
            let (observed, work) = if entry.obstacles.is_empty() {
                stage.in_transaction(entry).await
            } else {
                (stage.alone(entry).await, None)
            };
            wrong.extend(work.map(|work| format!("{version} {}: {work}", entry.text)));
            if observed != entry.on(version) && !accepts() {
                wrong.push(format!(
                    "{version} {}: shows {observed:?} and not {:?}",
                    entry.text,
                    entry.on(version)
                ));
            }
            match (compared(&stage, entry, &observed).await, &entry.reason) {
                (Some(_), Some(_)) => {
                    differ.insert(&entry.text);
                }
                (Some(difference), None) => wrong.push(format!("{version} {}: {difference}", entry.text)),
                (None, _) => {}
            }
            of_version.push(observed);
        }
        all.insert(version, of_version);
        stage.client.batch_execute("DROP SUBSCRIPTION sub").await.unwrap();
    }
    if accepts() {
        let head: Vec<&str> = list.lines().take_while(|line| line.starts_with("--")).collect();
        std::fs::write(PATH, write(&format!("{}\n", head.join("\n")), &entries, &all)).unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
    assert!(differ.len() <= DIFFER, "{differ:?}");
    if support::is_long() {
        let reasons: BTreeSet<&str> =
            entries.iter().filter(|entry| entry.reason.is_some()).map(|entry| &*entry.text).collect();
        assert_eq!(differ, reasons, "statements with a reason that do not differ");
    }
}
