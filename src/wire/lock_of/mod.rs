//! `locktop lock-of`: what statements take, and who is in the way now, as text for people and as JSON for programs.

mod json;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

pub use json::json;
pub use text::text;

use crate::model::lock::LockMode;
use crate::model::lock_of::{CatalogRelation, Elsewhere, Meeting, meeting};
use crate::model::statement::{Relation, Statement, Unknown, Work};
use crate::model::view::View;

/// A look at a server, and what its catalogs have of the relations.
#[derive(Debug)]
pub struct Now {
    /// The look by which it is told who is in the way.
    pub view: Arc<View>,
    /// The server, its database: as people call it.
    pub target: String,
    /// What there is of each relation that the statements name, in their order.
    pub places: Vec<(Relation, Result<CatalogRelation, Elsewhere>)>,
}

/// What was asked, and what is known of it.
#[derive(Debug)]
pub struct Report {
    /// The statements in their order, each as it was understood, or why it was not.
    pub statements: Vec<Result<Statement, Unknown>>,
    /// None where no server was asked.
    pub now: Option<Now>,
}

/// What it comes to: the exit status of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody is in the way, or no server was asked.
    Free,
    /// Somebody is in the way: it would wait.
    Waits,
    /// A statement, or a relation, is not known.
    Unknown,
}

impl Report {
    /// Every relation that the statements name, once.
    pub fn relations(statements: &[Result<Statement, Unknown>]) -> Vec<Relation> {
        let mut relations: Vec<Relation> = Vec::new();
        for take in statements.iter().flatten().flat_map(|statement| &statement.takes) {
            if !relations.contains(&take.relation) {
                relations.push(take.relation.clone());
            }
        }
        relations
    }

    /// What it comes to: not known comes before would wait, which comes before free.
    pub fn verdict(&self) -> Verdict {
        let unknown = self.statements.is_empty()
            || self
                .statements
                .iter()
                .any(|read| read.as_ref().map_or(true, |statement| self.lacks(statement).is_some()))
            || self.now.as_ref().is_some_and(|now| now.places.iter().any(|(_, place)| place.is_err()));
        let waits = self.meetings().any(|(_, _, met)| !met.in_the_way.is_empty());
        match (unknown, waits) {
            (true, _) => Verdict::Unknown,
            (false, true) => Verdict::Waits,
            (false, false) => Verdict::Free,
        }
    }

    /// The version from which on a server would have a statement that it does not have.
    fn lacks(&self, statement: &Statement) -> Option<u32> {
        let version = self.now.as_ref()?.view.snapshot.as_deref()?.server()?.version_num / 10_000;
        Some(statement.since()).filter(|since| *since > version)
    }

    /// What each lock of each statement would meet: numbers of the statement and of the lock.
    fn meetings(&self) -> impl Iterator<Item = (usize, usize, Meeting)> {
        let now = self.now.as_ref();
        let statements = self.statements.iter().enumerate();
        statements.filter_map(|(number, read)| Some((number, read.as_ref().ok()?))).flat_map(
            move |(number, statement)| {
                let takes = statement.takes.iter().enumerate();
                takes.filter_map(move |(at, take)| {
                    let now = now?;
                    let place = now.place(&take.relation)?;
                    Some((
                        number,
                        at,
                        meeting(&now.view, place, take, statement.waits_for().filter(|_| take.is_subject)),
                    ))
                })
            },
        )
    }
}

impl Now {
    fn place(&self, relation: &Relation) -> Option<&CatalogRelation> {
        self.found(relation)?.as_ref().ok()
    }

    fn found(&self, relation: &Relation) -> Option<&Result<CatalogRelation, Elsewhere>> {
        self.places.iter().find(|(named, _)| named == relation).map(|(_, found)| found)
    }
}

/// What is said of the forms of a statement, each once.
fn said(
    statement: &Statement,
    of: impl Fn(&crate::model::statement::Form) -> &'static str,
) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for words in statement.forms.iter().map(|form| of(form)).filter(|words| !words.is_empty()) {
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all
}

/// What would stop others less; for what stops writers the advice to give up soon first.
fn advice(statement: &Statement) -> Vec<&'static str> {
    const GIVE_UP: &str = "SET lock_timeout = '2s' before it, and try again where it fails: while it waits, whoever comes after it waits behind it";
    let stops = |mode: LockMode| mode >= LockMode::Share;
    let is_query = statement.forms.iter().all(|form| form.work == Work::Rows);
    let long = statement.takes.iter().any(|take| stops(take.mode)) && !is_query;
    long.then_some(GIVE_UP).into_iter().chain(said(statement, |form| form.advice)).collect()
}

/// What takes longest of all that it does.
fn work(statement: &Statement) -> Work {
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
