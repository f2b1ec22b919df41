use super::Now;
use crate::model::lock::LockMode;
use crate::model::lock_of::{Elsewhere, Place};
use crate::model::lock_words::{beside, beside_object, beside_rows, beside_sequence};
use crate::model::statement::script::Problem;
use crate::model::statement::{Act, Advisory, Form, Statement, Take, Target, Work};

const NAMED: usize = 10;

pub(super) fn problem(problem: Problem) -> &'static str {
    match problem {
        Problem::InBlock => "it fails: it cannot run inside a transaction block",
        Problem::Aborted => "it is not run: its transaction has failed and is not rolled back yet",
    }
}

/// `relation "ordres" does not exist`, with the schemas outside the search path that have one.
pub(super) fn missing(now: &Now, target: &Target) -> String {
    let what = match target {
        Target::Relation(relation) => format!("relation \"{relation}\""),
        other => other.to_string(),
    };
    let Some(Place::Missing(Elsewhere { schemas })) = now.place(target) else {
        return format!("{what} does not exist");
    };
    if schemas.is_empty() {
        return format!("{what} does not exist");
    }
    let name = match target {
        Target::Relation(relation) => &*relation.name,
        _ => "",
    };
    let (first, more) = schemas.split_at(schemas.len().min(NAMED));
    let mut names: Vec<String> = first.iter().map(|schema| format!("{schema}.{name}")).collect();
    names.extend((!more.is_empty()).then(|| format!("{} more", more.len())));
    format!("{what} does not exist in the search path, but {}", names.join(", "))
}

pub(super) fn not_looked_for(target: &Target) -> String {
    match target {
        Target::Advisory(call) if call.per_row => {
            format!(
                "{}({}) takes one lock for each row: their keys are not known",
                call.function, call.arguments
            )
        }
        Target::Advisory(call) => {
            format!("the key {} is not a constant: it is not known which sessions hold it", call.arguments)
        }
        other => format!("locktop does not search the catalogs for a {other}"),
    }
}

pub(super) fn kind(target: &Target) -> String {
    match target {
        Target::Relation(_) => "relation".to_owned(),
        Target::Object(object) => object.kind.label(),
        Target::Advisory(_) => "advisory".to_owned(),
        Target::Notifications => "notifications".to_owned(),
    }
}

pub(super) fn meanwhile(statement: &Statement, take: &Take, is_sequence: bool) -> String {
    let mode = take.on_table_of_index.unwrap_or(take.mode);
    match &take.target {
        Target::Relation(_) if is_sequence => beside_sequence(mode).to_owned(),
        Target::Relation(_) if statement.is_query() => beside_rows(mode),
        Target::Relation(_) => beside(mode),
        Target::Object(_) => beside_object(mode).to_owned(),
        Target::Advisory(call) => advisory(call),
        Target::Notifications => "other transactions with NOTIFY wait with their COMMIT".to_owned(),
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
    let stops = |take: &Take| {
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

pub(super) fn work(statement: &Statement) -> Work {
    let weight = |work: &Work| match work {
        Work::Catalog => 0,
        Work::Rows => 1,
        Work::Empties => 2,
        Work::Reads => 3,
        Work::BuildsIndex => 4,
        Work::Copies => 5,
        Work::MayRewrite => 6,
        Work::Rewrites => 7,
    };
    statement.forms.iter().map(|form| form.work).max_by_key(weight).unwrap_or(Work::Catalog)
}
