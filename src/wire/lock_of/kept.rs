//! How long the locks of a script are kept: its transactions, and session-level advisory locks.

use super::{Report, words};
use crate::model::lock::LockMode;
use crate::model::statement::script::{End, Held, Transaction};
use crate::model::statement::{Statement, Work};

impl Report {
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

    fn end(&self, transaction: &Transaction) -> String {
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
            let mut lines: Vec<(&'static str, String)> =
                transaction.held.iter().map(|held| ("holds", self.held(held, transaction))).collect();
            lines.extend(self.waits_through(transaction).into_iter().map(|line| ("note", line)));
            found.push((heading, lines));
        }
        if !self.script.session.is_empty() {
            let of = |held: &Held| {
                let until = match held.until {
                    Some(until) => self.place_of(until),
                    None => "the session ends: no statement releases it".to_owned(),
                };
                (
                    "holds",
                    format!(
                        "{} on {} from {} until {until}",
                        held.take.mode.short(),
                        held.take.target,
                        self.place_of(held.from)
                    ),
                )
            };
            found.push(("Session".to_owned(), self.script.session.iter().map(of).collect()));
        }
        found
    }

    fn held(&self, held: &Held, transaction: &Transaction) -> String {
        let early = held.until.filter(|until| *until != transaction.last);
        let until = early.map(|until| format!(" until {}", self.place_of(until))).unwrap_or_default();
        format!("{} on {} from {}{until}", held.take.mode.short(), held.take.target, self.place_of(held.from))
    }

    /// Locks that block writers, with the later long-running statements during which they are held.
    fn waits_through(&self, transaction: &Transaction) -> Vec<String> {
        let mut found = Vec::new();
        let stops = |held: &&Held| held.take.relation().is_some() && held.take.mode >= LockMode::Share;
        for held in transaction.held.iter().filter(stops) {
            let last = held.until.unwrap_or(transaction.last);
            let slow: Vec<String> = (held.from + 1..=last)
                .filter_map(|number| Some((number, self.statement(number)?)))
                .filter(|(_, statement)| !matches!(words::work(statement), Work::Catalog | Work::Empties))
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
