//! One JSON object. Keys can be added but never renamed.

use std::collections::BTreeMap;

use chrono::SecondsFormat;

use super::words::{advice, kind, meanwhile, of_forms, work};
use super::{Judgement, LockOfReport, Verdict, age};
use crate::model::Timestamp;
use crate::model::disclosure::{Channel, shown};
use crate::model::lock::{LockMode, LockModes};
use crate::model::lock_of::{Meeting, Obstacle, Resolution, known};
use crate::model::statement::script::{HeldTake, ScriptTransaction};
use crate::model::statement::{Statement, StatementLock, StatementTarget};
use crate::model::view::View;
use crate::output::json::object::{self, Json, object};

pub fn json(report: &LockOfReport) -> Result<String, serde_json::Error> {
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
        let utc = |at: Timestamp| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        object!(
            now;
            target,
            database = server.map(|server| &server.database),
            version = server.map(|server| &server.version),
            taken_at = snapshot.map(|snapshot| utc(snapshot.taken_at)),
        )
    });
    // The lists are numbers of statements: those that wait, that fail because of a lock, and that fail otherwise or are
    // not known. `would_wait` is `None` if a result is not known and nothing waits, or if no server was asked.
    object::text(&object!(
        format = 1,
        would_wait, waits, refused, not_judged, server,
        statements[] = (0..report.pieces.len()).map(|number| one(report, number)),
        transactions[] = report.script.transactions.iter().enumerate().map(kept),
        session_locks[] = report.script.session.iter().map(holds),
    ))
}

fn kept((number, transaction): (usize, &ScriptTransaction)) -> impl Json {
    object!(
        number = number + 1,
        first = transaction.first + 1,
        last = transaction.last + 1,
        end = transaction.end.as_str(),
        holds[] = transaction.held.iter().map(holds),
    )
}

fn holds(held: &HeldTake) -> impl Json {
    object!(
        on = held.take.target.to_string(),
        mode = held.take.mode,
        from = held.from + 1,
        until = held.until.map(|until| until + 1),
    )
}

/// `transaction` is the number of its transaction in `transactions`; `None` if it has its own.
fn one(report: &LockOfReport, number: usize) -> impl Json {
    let judgement = report.judge(number);
    let statement = report.statement(number);
    let step = report.script.steps.get(number);
    let timeouts: BTreeMap<&'static str, String> = step
        .map(|step| step.timeouts.set().map(|(name, value)| (name, value.to_owned())).collect())
        .unwrap_or_default();
    let met = move |at: usize| report.met.get(number)?.get(at)?.as_ref();
    object!(
        number = number + 1,
        line = report.pieces.get(number).map_or(0, |piece| piece.line),
        known = statement.is_some(),
        error = match &judgement {
            Judgement::Unknown(why) => Some(why),
            _ => None,
        },
        result = match judgement {
            Judgement::Nothing => "nothing",
            Judgement::Free if report.now.is_none() => "known",
            Judgement::Free => "free",
            Judgement::Waits => "waits",
            Judgement::Refused => "refused",
            Judgement::Unknown(_) => "unknown",
        },
        name = statement.map(|statement| &statement.name),
        since = statement.map(Statement::since),
        work = statement.map(|statement| work(statement).as_str()),
        transaction_block = statement.map(|statement| !statement.is_alone()),
        transaction = step.and_then(|step| step.transaction).map(|number| number + 1),
        timeouts = timeouts,
        waits_for_transactions = statement.and_then(Statement::waits_for),
        waits_for_snapshots = statement.map(Statement::waits_for_snapshots),
        takes[] = statement.into_iter().flat_map(|statement| {
            let takes = statement.takes.iter().enumerate().filter(|(_, take)| take.mode != LockMode::SIRead);
            takes.map(move |(at, take)| lock(report, statement, take, met(at)))
        }),
        not_known[] = statement.into_iter().flat_map(|statement| &statement.unseen),
        notes = statement.map(|statement| of_forms(statement, |form| form.note)).unwrap_or_default(),
        advice = statement.map(|statement| advice(statement, !timeouts.is_empty())).unwrap_or_default(),
    )
}

/// `since` is the first server version that takes it, if not all do.
fn lock(
    report: &LockOfReport,
    statement: &Statement,
    take: &StatementLock,
    met: Option<&Meeting>,
) -> impl Json {
    let now = report.now.as_ref();
    let place = now.and_then(|now| now.place(&take.target));
    let relation = match place {
        Some(Resolution::Relation(relation)) => Some(relation),
        _ => None,
    };
    let is_sequence = relation.is_some_and(|relation| relation.kind == 'S');
    object!(
        take;
        kind = kind(&take.target),
        schema = match &take.target {
            StatementTarget::Relation(relation) => relation.schema.as_ref(),
            StatementTarget::Object(object) => object.schema.as_ref(),
            _ => None,
        },
        name = match &take.target {
            StatementTarget::Relation(relation) => relation.name.clone(),
            StatementTarget::Object(object) => object.name.clone(),
            StatementTarget::Advisory(call) => call.key.map_or_else(|| call.arguments.clone(), |key| key.to_string()),
            StatementTarget::Notifications => String::new(),
        },
        mode,
        table_mode = take.on_table_of_index,
        since = Some(take.since).filter(|since| *since > 0),
        if_exists = take.is_optional,
        beside = meanwhile(statement, take, is_sequence),
        now = now.zip(met).filter(|_| !matches!(place, Some(Resolution::Missing(_)))).map(|(now, met)| object!(
            met;
            oid = relation.map(|relation| relation.oid),
            schema = relation.map(|relation| &relation.schema),
            kind = relation.map(|relation| relation.kind),
            rows = relation.and_then(|relation| relation.rows),
            bytes = relation.map(|relation| relation.bytes),
            below = relation.map_or(0, |relation| relation.below),
            also[] = report.wants(statement, take).into_iter().filter(|want| want.is_listed(statement, Some(met))).filter_map(|want| {
                let name = &want.other?.name;
                Some(object!(want; name = name, mode))
            }),
            using, row_lockers, waiting,
            hidden_sessions = met.hidden,
            oldest_transaction = met.oldest.map(|(_, since)| age(&now.view, since)),
            in_the_way[] = met.in_the_way.iter().map(|one| in_the_way(&now.view, one)),
        )),
    )
}

/// `waits_for` are the process ids of the root blockers that this session itself waits for.
fn in_the_way(view: &View, one: &Obstacle) -> impl Json {
    let known = known(view, one.party);
    object!(
        known;
        pid, gid,
        how = one.how.as_str(),
        modes[] = LockModes::iter(one.modes),
        who, state,
        transaction = one.since.map(|since| age(view, since)),
        query = known.query.as_ref().map(|query| shown(Channel::LockOf, query)),
        waits_for[] = one.roots.iter().map(|root| root.pid()),
    )
}
