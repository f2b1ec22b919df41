use super::{LockOfReport, LockOfState};
use crate::model::lock::LockMode;
use crate::model::lock_of::{CatalogRelation, Resolution};
use crate::model::lock_words::{
    also_permitted, object_also_permitted, rows_also_permitted, sequence_also_permitted,
};
use crate::model::statement::script::{End, HeldTake, Problem, ScriptTransaction};
use crate::model::statement::{
    Act, Advisory, Also, Form, Role, Statement, StatementLock, StatementTarget, StatementWork,
};
use crate::text::count;

const NAMED: usize = 10;

pub(super) fn problem(problem: Problem) -> &'static str {
    match problem {
        Problem::InBlock => "it fails: it cannot run inside a transaction block",
        Problem::Aborted => "it is not run: its transaction has failed and is not rolled back yet",
    }
}

/// `shop.orders is a table, about 1,200,000 rows, 310 MB`
pub(super) fn place(
    report: &LockOfReport,
    now: &LockOfState,
    number: usize,
    take: &StatementLock,
) -> Option<String> {
    match (now.place(&take.target)?, &take.target) {
        (Resolution::Relation(place), StatementTarget::Relation(relation)) => {
            Some(format!("{}.{} {}", place.schema, relation.name, size(place)))
        }
        (Resolution::Object(oids, _), target) if oids.len() > 1 => {
            Some(format!("{} {}s have the name {target}: each is shown", oids.len(), kind(target)))
        }
        (Resolution::Object(..), target) => {
            let target = target.to_string();
            let the = if target.starts_with("the ") { "" } else { "the " };
            Some(format!("{the}{target} exists"))
        }
        (Resolution::Lock, target) => Some(target.to_string()),
        (Resolution::Missing(_), target) => report.creator(number, take).map(|creator| {
            format!(
                "{target} is created by {}: no other session can lock it before that transaction commits",
                report.place_of(creator)
            )
        }),
        (_, _) => None,
    }
}

/// `is a table, about 1,200,000 rows, 310 MB`
pub(super) fn size(place: &CatalogRelation) -> String {
    let kind = match place.kind {
        'p' => "a partitioned table",
        'i' => "an index",
        'I' => "a partitioned index",
        'v' => "a view",
        'm' => "a materialized view",
        'S' => "a sequence",
        'f' => "a foreign table",
        't' => "a TOAST table",
        'c' => "a composite type",
        _ => "a table",
    };
    let is_stored = matches!(place.kind, 'r' | 'm' | 'i' | 't');
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no less than 0, and an estimate"
    )]
    let rows = place.rows.filter(|_| is_stored).map(|rows| format!(", about {} rows", count(rows as u64)));
    let bytes = (is_stored && place.bytes > 0).then(|| format!(", {}", bytes(place.bytes)));
    format!("is {kind}{}{}", rows.unwrap_or_default(), bytes.unwrap_or_default())
}

#[expect(clippy::cast_precision_loss, reason = "it is for people")]
fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)];
    let unit = UNITS.iter().find(|(_, unit)| bytes >= 10 * unit).or(UNITS.last());
    let (name, unit) = unit.copied().unwrap_or(("kB", 1 << 10));
    format!("{:.0} {name}", bytes as f64 / unit as f64)
}

/// `relation "ordres" does not exist`, with the schemas outside the search path that have one.
pub(super) fn missing(now: &LockOfState, target: &StatementTarget) -> String {
    let (what, name) = match target {
        StatementTarget::Relation(relation) => (format!("relation \"{relation}\""), &*relation.name),
        other => (other.to_string(), ""),
    };
    let Some(Resolution::Missing(schemas)) =
        now.place(target).filter(|place| **place != Resolution::Missing(Vec::new()))
    else {
        return format!("{what} does not exist");
    };
    let (first, more) = schemas.split_at(schemas.len().min(NAMED));
    let mut names: Vec<String> = first.iter().map(|schema| format!("{schema}.{name}")).collect();
    names.extend((!more.is_empty()).then(|| format!("{} more", more.len())));
    format!("{what} does not exist in the search path, but {}", names.join(", "))
}

pub(super) fn not_searched(target: &StatementTarget) -> String {
    match target {
        StatementTarget::Advisory(call) if call.per_row => {
            format!(
                "{}({}) takes one lock for each row: their keys are not known",
                call.function, call.arguments
            )
        }
        StatementTarget::Advisory(call) => {
            format!("the key {} is not a constant: it is not known which sessions hold it", call.arguments)
        }
        other => format!("locktop does not search the catalogs for a {other}"),
    }
}

pub(super) fn kind(target: &StatementTarget) -> String {
    match target {
        StatementTarget::Relation(_) => "relation".to_owned(),
        StatementTarget::Object(object) => object.kind.label(),
        StatementTarget::Advisory(_) => "advisory".to_owned(),
        StatementTarget::Notifications => "notifications".to_owned(),
    }
}

pub(super) fn meanwhile(statement: &Statement, take: &StatementLock, is_sequence: bool) -> String {
    let mode = take.on_table_of_index.unwrap_or(take.mode);
    let is_whole = |also: &Also| also.role == Role::Indexes && also.mode == Some(LockMode::AccessExclusive);
    let locks_index = take.on_table_of_index.is_some() && take.mode == LockMode::AccessExclusive
        || statement.forms.iter().any(|form| form.also.iter().any(is_whole));
    match &take.target {
        // Documentation, "REINDEX": the planner locks all indexes of the table.
        StatementTarget::Relation(_) if locks_index && mode < LockMode::AccessExclusive => {
            "most queries of the table wait, since they open all its indexes; changes of its rows wait, too"
                .to_owned()
        }
        StatementTarget::Relation(_) if is_sequence => sequence_also_permitted(mode).to_owned(),
        StatementTarget::Relation(_) if statement.is_query() => rows_also_permitted(mode),
        StatementTarget::Relation(_) => also_permitted(mode),
        StatementTarget::Object(_) => object_also_permitted(mode).to_owned(),
        StatementTarget::Advisory(call) => advisory(call),
        StatementTarget::Notifications => "other transactions with NOTIFY wait with their COMMIT".to_owned(),
    }
}

fn advisory(call: &Advisory) -> String {
    let others = match call.mode {
        LockMode::Share => "others can take it with a _shared function, not exclusively",
        _ => "no other session can take it",
    };
    match call.act {
        Act::Try => format!("{others}; if one holds it, the function returns false and does not wait"),
        _ => others.to_owned(),
    }
}

pub(super) fn of_forms(statement: &Statement, of: impl Fn(&Form) -> &'static str) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for words in statement.forms.iter().map(|form| of(form)).filter(|words| !words.is_empty()) {
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all
}

/// Whether it blocks writers while it waits and runs, so that a timeout is useful.
pub(super) fn is_long(statement: &Statement) -> bool {
    let stops = |take: &StatementLock| {
        take.relation().is_some() && take.mode >= LockMode::Share && take.mode != LockMode::SIRead
    };
    statement.takes.iter().any(stops) && !statement.is_query()
}

/// Ways to block others less. For a statement that blocks writers, the first one is a timeout, unless the text sets one.
pub(super) fn advice(statement: &Statement, has_timeout: bool) -> Vec<&'static str> {
    const GIVE_UP: &str = "SET lock_timeout = '2s' before it, and retry if it fails: while it waits, later conflicting requests queue behind it";
    let give_up = is_long(statement) && !has_timeout;
    give_up.then_some(GIVE_UP).into_iter().chain(of_forms(statement, |form| form.advice)).collect()
}

pub(super) fn work(statement: &Statement) -> StatementWork {
    statement.forms.iter().map(|form| form.work).max().unwrap_or(StatementWork::Catalog)
}

// How long the locks of a script are kept: its transactions, and session-level advisory locks.

impl LockOfReport {
    pub(super) fn is_script(&self) -> bool {
        self.pieces.len() > 1
    }

    /// `statement 5 (line 9)`
    pub(super) fn place_of(&self, number: usize) -> String {
        let line = self.pieces.get(number).map_or(0, |piece| piece.line);
        format!("statement {} (line {line})", number + 1)
    }

    pub(super) fn until(&self, number: usize, statement: &Statement) -> String {
        let step = self.script.steps.get(number);
        let transaction = step.and_then(|step| self.script.transactions.get(step.transaction?));
        match transaction {
            _ if statement.is_alone() => "it ends".to_owned(),
            None => "the end of its transaction".to_owned(),
            Some(transaction) => self.end(transaction),
        }
    }

    fn end(&self, transaction: &ScriptTransaction) -> String {
        let at = self.place_of(transaction.last);
        match transaction.end {
            End::Commit if self.statement(transaction.last).is_some_and(|last| last.control.is_some()) => {
                format!("COMMIT, {at}")
            }
            End::Commit => format!("the end of the transaction, after {at}"),
            End::Rollback => format!("ROLLBACK, {at}"),
            End::Prepared => format!("COMMIT PREPARED or ROLLBACK PREPARED: {at} prepares the transaction"),
            End::Open => "the end of its transaction: the text does not end it".to_owned(),
        }
    }

    pub(super) fn transactions(&self) -> Vec<(String, Vec<(&'static str, String)>)> {
        let mut found = Vec::new();
        for transaction in self.script.transactions.iter().filter(|one| !one.held.is_empty()) {
            let (first, last) = (transaction.first + 1, transaction.last + 1);
            let heading =
                format!("Transaction, statements {first} to {last}: until {}", self.end(transaction));
            let of = |held: &HeldTake| {
                let early = held.until.filter(|until| *until != transaction.last);
                ("holds", self.held(held, early.map(|until| self.place_of(until))))
            };
            let mut lines: Vec<(&'static str, String)> = transaction.held.iter().map(of).collect();
            lines.extend(self.waits_through(transaction).into_iter().map(|line| ("note", line)));
            found.push((heading, lines));
        }
        if !self.script.session.is_empty() {
            let of = |held: &HeldTake| {
                let until = held.until.map(|until| self.place_of(until));
                let until = until.unwrap_or_else(|| "the session ends: no statement releases it".to_owned());
                ("holds", self.held(held, Some(until)))
            };
            found.push(("Session".to_owned(), self.script.session.iter().map(of).collect()));
        }
        found
    }

    fn held(&self, held: &HeldTake, until: Option<String>) -> String {
        let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
        format!("{} on {} from {}{until}", held.take.mode.short(), held.take.target, self.place_of(held.from))
    }

    /// Locks that block writers, with the later long-running statements during which they are held.
    fn waits_through(&self, transaction: &ScriptTransaction) -> Vec<String> {
        let mut found = Vec::new();
        let stops = |held: &&HeldTake| held.take.relation().is_some() && held.take.mode >= LockMode::Share;
        for held in transaction.held.iter().filter(stops) {
            let last = held.until.unwrap_or(transaction.last);
            let slow: Vec<String> = (held.from + 1..=last)
                .filter_map(|number| Some((number, self.statement(number)?)))
                .filter(|(_, statement)| {
                    !matches!(work(statement), StatementWork::Catalog | StatementWork::Empties)
                })
                .map(|(number, statement)| format!("{} {}", number + 1, statement.name))
                .collect();
            if !slow.is_empty() {
                found.push(format!(
                    "{} on {} stays held while later statements run: {}",
                    held.take.mode.short(),
                    held.take.target,
                    slow.join(", ")
                ));
            }
        }
        found
    }
}
