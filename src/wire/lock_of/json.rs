//! One JSON object. Keys can be added but never renamed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::words::{advice, kind, meanwhile, of_forms, work};
use super::{Judgement, Report, Verdict};
use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockModes};
use crate::model::lock_of::{How, Meeting, Obstacle, Place, known};
use crate::model::output::{Channel, shown};
use crate::model::statement::script::{End, Held, Transaction};
use crate::model::statement::{Statement, Take, Target};
use crate::model::view::View;
use crate::wire::json::line;

#[derive(Debug, Serialize)]
struct Document<'a> {
    format: u32,
    /// `None` if a result is not known and nothing waits, or if no server was asked.
    would_wait: Option<bool>,
    /// Numbers of the statements that wait, that fail because of a lock, and that fail otherwise or are not known.
    waits: Vec<usize>,
    refused: Vec<usize>,
    not_judged: Vec<usize>,
    server: Option<Server<'a>>,
    statements: Vec<One<'a>>,
    transactions: Vec<Kept>,
    session_locks: Vec<Holds>,
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
    number: usize,
    line: usize,
    known: bool,
    error: Option<String>,
    result: &'static str,
    name: Option<&'a str>,
    since: Option<u32>,
    work: Option<&'static str>,
    transaction_block: Option<bool>,
    /// Number of its transaction in `transactions`; `None` if it has its own.
    transaction: Option<usize>,
    timeouts: BTreeMap<&'static str, String>,
    waits_for_transactions: Option<&'static str>,
    waits_for_snapshots: Option<bool>,
    takes: Vec<Lock<'a>>,
    not_known: Vec<&'static str>,
    notes: Vec<&'static str>,
    advice: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct Kept {
    number: usize,
    first: usize,
    last: usize,
    end: &'static str,
    holds: Vec<Holds>,
}

#[derive(Debug, Serialize)]
struct Holds {
    on: String,
    mode: &'static str,
    from: usize,
    until: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Lock<'a> {
    kind: String,
    schema: Option<&'a str>,
    name: String,
    mode: &'static str,
    table_mode: Option<&'static str>,
    /// The first server version that takes it, if not all do.
    since: Option<u32>,
    if_exists: bool,
    beside: String,
    now: Option<Now<'a>>,
}

#[derive(Debug, Serialize)]
struct Now<'a> {
    oid: Option<u32>,
    schema: Option<&'a str>,
    #[serde(rename = "kind")]
    relkind: Option<char>,
    rows: Option<f64>,
    bytes: Option<u64>,
    below: usize,
    also: Vec<Also<'a>>,
    using: usize,
    row_lockers: usize,
    waiting: usize,
    hidden_sessions: usize,
    oldest_transaction: Option<f64>,
    in_the_way: Vec<InTheWay>,
}

#[derive(Debug, Serialize)]
struct Also<'a> {
    name: &'a str,
    mode: &'static str,
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
    /// Process ids of the root blockers that this session itself waits for.
    waits_for: Vec<i32>,
}

pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    let numbers = |is: &dyn Fn(&Judgement) -> bool| -> Vec<usize> {
        report.numbers(is).into_iter().map(|number| number + 1).collect()
    };
    let waits = numbers(&|one| *one == Judgement::Waits);
    let refused = numbers(&|one| *one == Judgement::Refused);
    let not_judged = numbers(&|one| matches!(one, Judgement::Unknown(_)));
    let would_wait = match report.verdict() {
        _ if report.now.is_none() => None,
        Verdict::Waits if !waits.is_empty() => Some(true),
        _ => not_judged.is_empty().then_some(false),
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
    line(&Document {
        format: 1,
        would_wait,
        waits,
        refused,
        not_judged,
        server,
        statements: (0..report.pieces.len()).map(|number| one(report, number)).collect(),
        transactions: report.script.transactions.iter().enumerate().map(kept).collect(),
        session_locks: report.script.session.iter().map(holds).collect(),
    })
}

fn kept((number, transaction): (usize, &Transaction)) -> Kept {
    Kept {
        number: number + 1,
        first: transaction.first + 1,
        last: transaction.last + 1,
        end: match transaction.end {
            End::Commit => "commit",
            End::Rollback => "rollback",
            End::Prepared => "prepared",
            End::Open => "open",
        },
        holds: transaction.held.iter().map(holds).collect(),
    }
}

fn holds(held: &Held) -> Holds {
    Holds {
        on: held.take.target.to_string(),
        mode: held.take.mode.as_str(),
        from: held.from + 1,
        until: held.until.map(|until| until + 1),
    }
}

fn one(report: &Report, number: usize) -> One<'_> {
    let judgement = report.judge(number);
    let statement = report.statement(number);
    let step = report.script.steps.get(number);
    let timeouts: BTreeMap<&'static str, String> = step
        .map(|step| step.timeouts.set().map(|(name, value)| (name, value.to_owned())).collect())
        .unwrap_or_default();
    let takes = statement.map(|statement| statement.takes.iter().enumerate());
    let met = |at: usize| report.met.get(number)?.get(at)?.as_ref();
    One {
        number: number + 1,
        line: report.pieces.get(number).map_or(0, |piece| piece.line),
        known: statement.is_some(),
        result: match judgement {
            Judgement::Nothing => "nothing",
            Judgement::Free if report.now.is_none() => "known",
            Judgement::Free => "free",
            Judgement::Waits => "waits",
            Judgement::Refused => "refused",
            Judgement::Unknown(_) => "unknown",
        },
        error: match judgement {
            Judgement::Unknown(why) => Some(why),
            _ => None,
        },
        name: statement.map(|statement| &*statement.name),
        since: statement.map(Statement::since),
        work: statement.map(|statement| work(statement).as_str()),
        transaction_block: statement.map(|statement| !statement.is_alone()),
        transaction: step.and_then(|step| step.transaction).map(|number| number + 1),
        waits_for_transactions: statement.and_then(Statement::waits_for).map(LockMode::as_str),
        waits_for_snapshots: statement.map(Statement::waits_for_snapshots),
        takes: takes
            .into_iter()
            .flatten()
            .filter(|(_, take)| take.mode != LockMode::SIRead)
            .filter_map(|(at, take)| Some(lock(report, statement?, take, met(at))))
            .collect(),
        not_known: statement.map(|statement| statement.unseen.clone()).unwrap_or_default(),
        notes: statement.map(|statement| of_forms(statement, |form| form.note)).unwrap_or_default(),
        advice: statement.map(|statement| advice(statement, !timeouts.is_empty())).unwrap_or_default(),
        timeouts,
    }
}

fn lock<'a>(report: &'a Report, statement: &'a Statement, take: &'a Take, met: Option<&Meeting>) -> Lock<'a> {
    let now = report.now.as_ref();
    let place = now.and_then(|now| now.place(&take.target));
    let relation = match place {
        Some(Place::Relation(relation)) => Some(relation),
        _ => None,
    };
    let is_sequence = relation.is_some_and(|relation| relation.kind == 'S');
    let also = |want: crate::model::lock_of::Want<'a>| {
        Some(Also { name: &want.other?.name, mode: want.mode.as_str() })
    };
    Lock {
        kind: kind(&take.target),
        schema: match &take.target {
            Target::Relation(relation) => relation.schema.as_deref(),
            Target::Object(object) => object.schema.as_deref(),
            _ => None,
        },
        name: match &take.target {
            Target::Relation(relation) => relation.name.clone(),
            Target::Object(object) => object.name.clone(),
            Target::Advisory(call) => call.key.map_or_else(|| call.arguments.clone(), |key| key.to_string()),
            Target::Notifications => String::new(),
        },
        mode: take.mode.as_str(),
        table_mode: take.on_table_of_index.map(LockMode::as_str),
        since: Some(take.since).filter(|since| *since > 0),
        if_exists: take.is_optional,
        beside: meanwhile(statement, take, is_sequence),
        now: now.zip(met).filter(|_| !matches!(place, Some(Place::Missing(_)))).map(|(now, met)| Now {
            oid: relation.map(|relation| relation.oid),
            schema: relation.map(|relation| &*relation.schema),
            relkind: relation.map(|relation| relation.kind),
            rows: relation.and_then(|relation| relation.rows),
            bytes: relation.map(|relation| relation.bytes),
            below: relation.map_or(0, |relation| relation.below),
            also: report.wants(statement, take).into_iter().filter_map(also).collect(),
            using: met.using,
            row_lockers: met.row_lockers,
            waiting: met.waiting,
            hidden_sessions: met.hidden,
            oldest_transaction: met.oldest.map(|(_, since)| age(&now.view, since)),
            in_the_way: met.in_the_way.iter().map(|one| in_the_way(&now.view, one)).collect(),
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
            How::Snapshot => "snapshot",
        },
        modes: LockModes::iter(one.modes).map(LockMode::as_str).collect(),
        who: known.who,
        state: known.state,
        transaction: one.since.map(|since| age(view, since)),
        query: known.query.map(|query| shown(Channel::LockOf, &query).into_owned()),
        waits_for: one.roots.iter().map(|root| root.pid()).collect(),
    }
}

fn age(view: &View, since: Timestamp) -> f64 {
    let now = view.snapshot.as_deref().map_or(since, |snapshot| snapshot.taken_at);
    (now - since).as_seconds_f64().max(0.0)
}
