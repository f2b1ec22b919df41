//! For programs: one object. Keys may be added, never renamed.

use serde::Serialize;

use super::{Report, Verdict, advice, said, work};
use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockModes};
use crate::model::lock_of::{How, Meeting, Obstacle, known};
use crate::model::lock_words::beside;
use crate::model::output::{Channel, shown};
use crate::model::statement::{Statement, Take, Unknown};
use crate::model::view::View;
use crate::wire::json::line;

#[derive(Debug, Serialize)]
struct Document<'a> {
    format: u32,
    /// None where that is not known, or no server was asked.
    would_wait: Option<bool>,
    server: Option<Server<'a>>,
    statements: Vec<One<'a>>,
}

#[derive(Debug, Serialize)]
struct Server<'a> {
    target: &'a str,
    database: Option<&'a str>,
    version: Option<&'a str>,
    taken_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct One<'a> {
    known: bool,
    error: Option<String>,
    name: Option<&'a str>,
    since: Option<u32>,
    work: Option<&'static str>,
    transaction_block: Option<bool>,
    waits_for_transactions: Option<&'static str>,
    takes: Vec<Lock<'a>>,
    notes: Vec<&'static str>,
    advice: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Lock<'a> {
    schema: Option<&'a str>,
    name: &'a str,
    mode: &'static str,
    table_mode: Option<&'static str>,
    beside: String,
    now: Option<Now<'a>>,
}

#[derive(Debug, Serialize)]
struct Now<'a> {
    oid: u32,
    schema: &'a str,
    kind: char,
    rows: Option<f64>,
    bytes: u64,
    below: usize,
    using: usize,
    row_lockers: usize,
    waiting: usize,
    oldest_transaction: Option<f64>,
    in_the_way: Vec<InTheWay>,
}

#[derive(Debug, Serialize)]
struct InTheWay {
    pid: Option<i32>,
    gid: Option<String>,
    how: &'static str,
    modes: Vec<&'static str>,
    who: String,
    state: String,
    transaction: Option<f64>,
    query: Option<String>,
}

/// The report as one line.
///
/// # Errors
/// None that anybody has seen: the shapes have no map with keys that are no text, and no number that is none.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    let would_wait = match report.verdict() {
        Verdict::Unknown => None,
        Verdict::Waits => Some(true),
        Verdict::Free => report.now.as_ref().map(|_| false),
    };
    let server = report.now.as_ref().map(|now| {
        let snapshot = now.view.snapshot.as_deref();
        let server = snapshot.and_then(|snapshot| snapshot.server());
        Server {
            target: &now.target,
            database: server.map(|server| &*server.database),
            version: server.map(|server| &*server.version),
            taken_at: snapshot.map(|snapshot| snapshot.taken_at),
        }
    });
    let meetings: Vec<(usize, usize, Meeting)> = report.meetings().collect();
    let statements =
        report.statements.iter().enumerate().map(|(number, read)| one(report, number, read, &meetings));
    line(&Document { format: 1, would_wait, server, statements: statements.collect() })
}

fn one<'a>(
    report: &'a Report,
    number: usize,
    read: &'a Result<Statement, Unknown>,
    meetings: &[(usize, usize, Meeting)],
) -> One<'a> {
    let statement = read.as_ref().ok();
    let lacks = statement.and_then(|statement| report.lacks(statement));
    let error = read.as_ref().err().map(ToString::to_string);
    let takes = statement.map(|statement| statement.takes.iter().enumerate());
    let met =
        |at: usize| meetings.iter().find(|(of, lock, _)| (*of, *lock) == (number, at)).map(|(.., met)| met);
    One {
        known: statement.is_some(),
        error: error.or_else(|| lacks.map(|since| format!("PostgreSQL {since} and later have it"))),
        name: statement.map(|statement| &*statement.name),
        since: statement.map(Statement::since),
        work: statement.map(|statement| work(statement).as_str()),
        transaction_block: statement.map(|statement| !statement.forms.iter().any(|form| form.alone)),
        waits_for_transactions: statement.and_then(Statement::waits_for).map(LockMode::as_str),
        takes: takes.into_iter().flatten().map(|(at, take)| lock(report, take, met(at))).collect(),
        notes: statement.map(|statement| said(statement, |form| form.note)).unwrap_or_default(),
        advice: statement.map(advice).unwrap_or_default(),
    }
}

fn lock<'a>(report: &'a Report, take: &'a Take, met: Option<&Meeting>) -> Lock<'a> {
    let now = report.now.as_ref();
    Lock {
        schema: take.relation.schema.as_deref(),
        name: &take.relation.name,
        mode: take.mode.as_str(),
        table_mode: take.on_table_of_index.map(LockMode::as_str),
        beside: beside(take.on_table_of_index.unwrap_or(take.mode)),
        now: now.zip(met).and_then(|(now, met)| {
            let place = now.place(&take.relation)?;
            Some(Now {
                oid: place.oid,
                schema: &place.schema,
                kind: place.kind,
                rows: place.rows,
                bytes: place.bytes,
                below: place.below.len(),
                using: met.using,
                row_lockers: met.row_lockers,
                waiting: met.waiting,
                oldest_transaction: met.oldest.map(|(_, since)| age(&now.view, since)),
                in_the_way: met.in_the_way.iter().map(|one| in_the_way(&now.view, one)).collect(),
            })
        }),
    }
}

fn in_the_way(view: &View, one: &Obstacle) -> InTheWay {
    let known = known(view, one.party);
    InTheWay {
        pid: known.pid,
        gid: known.gid.map(|gid| gid.to_string()),
        how: match one.how {
            How::Holds => "holds",
            How::Ahead => "ahead",
            How::Transaction => "transaction",
        },
        modes: LockModes::iter(one.modes).map(LockMode::as_str).collect(),
        who: known.who,
        state: known.state,
        transaction: one.since.map(|since| age(view, since)),
        query: known.query.map(|query| shown(Channel::LockOf, &query).into_owned()),
    }
}

fn age(view: &View, since: Timestamp) -> f64 {
    let now = view.snapshot.as_deref().map_or(since, |snapshot| snapshot.taken_at);
    (now - since).as_seconds_f64().max(0.0)
}
