//! Where the tables of an adapter are, and which of its queries may run there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Action, ActionKind, Adapter, Part, Proof};
use crate::model::Text;

/// An installation, and what may be read of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// The definition that it was found by.
    pub adapter: Arc<Adapter>,
    /// The OID of its first table: what identifies it.
    pub oid: u32,
    /// The schema of its tables, as the catalog has it.
    pub schema: Text,
    /// What stands before the names of its tables, where an adapter knows them by their end; or behind them, where it has a table for each queue.
    pub prefix: Text,
    /// Its tables: the adapter's key, and `schema.table`.
    pub tables: BTreeMap<Text, Text>,
    /// Which version of the project it is, as far as that can be told.
    pub version: Option<Text>,
    /// Why nothing of it is read.
    pub refused: Option<Text>,
    /// What is read of each part.
    pub choices: Vec<Choice>,
    /// Whether its actions would be understood, where that was tried.
    pub actions: Vec<Rehearsal>,
    /// There is no other one of this system, and there never are several in a schema: its title says which it is.
    pub is_alone: bool,
}

/// The queries of a part that were tried here, in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The part that they read.
    pub part: Part,
    /// In the order of the file, up to the one that is used.
    pub tried: Vec<Tried>,
}

/// One query of a part, and whether it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// Its number among those of its part in the file, from 1.
    pub number: usize,
    /// What its plan costs, in the planner's units; or why it is not used.
    pub outcome: Result<f64, Text>,
    /// Rows of the largest table that it reads, by the planner's count; none where that was not reached.
    pub size: Option<f64>,
    /// What it took to read it once; none where that was not tried.
    pub read: Option<Result<Reading, Text>>,
    /// Where in its query the mistake is, in characters from its beginning, as far as the server said it.
    pub at: Option<usize>,
}

/// A statement that acts, which was understood and planned, but not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    /// Whether it would recover a job or unlock a lease.
    pub kind: ActionKind,
    /// Its number among those of its kind in the file, from 1.
    pub number: usize,
    /// `Ok` where the server prepared it; else why it cannot be used here.
    pub outcome: Result<(), Text>,
    /// Where in the statement the mistake is, in characters from its beginning, as far as the server said it.
    pub at: Option<usize>,
}

/// What came of reading a part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Rows that came; at most one more than are kept.
    pub rows: usize,
    /// How long it took, in seconds, for the client.
    pub seconds: f64,
}

impl Installation {
    /// `GoodJob`; where there are several of a system, with what tells it from the others: `River jobs`, `Quartz qrtz`.
    pub fn label(&self) -> String {
        let title = &self.adapter.title;
        if self.is_alone {
            return title.to_string();
        }
        let is_its_own = ["public", &self.adapter.name, &self.adapter.name.replace('_', "")];
        let schema = Some(&*self.schema).filter(|schema| !schema.is_empty() && !is_its_own.contains(schema));
        let prefix = Some(self.prefix.trim_end_matches(['_', ' '])).filter(|prefix| !prefix.is_empty());
        match (schema, prefix) {
            (None, None) => title.to_string(),
            (Some(schema), Some(prefix)) => format!("{title} {schema}.{prefix}"),
            (Some(one), None) | (None, Some(one)) => format!("{title} {one}"),
        }
    }

    /// Whether it is one; else it stands for tables that nobody has looked at.
    pub fn is_somewhere(&self) -> bool {
        self.oid != 0
    }

    /// What may be done to a row of it: of a job by what proves that it is lost; of the alternatives the first of which all tables are here.
    pub fn action(&self, kind: ActionKind, proof: Option<Proof>) -> Option<(usize, &Action)> {
        let is_here = |key: &Text| self.tables.contains_key(key);
        self.adapter.actions_of(kind).find(|(_, action)| {
            proof.is_none_or(|proof| action.proofs.contains(&proof))
                && action.needs.iter().all(|need| is_here(&need.table))
                && action.sql.tables().into_iter().all(is_here)
        })
    }

    /// What is read of a part.
    pub fn choice(&self, part: Part) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.part == part)
    }
}

impl Choice {
    /// The alternative that is used; none where none of them may run.
    pub fn used(&self) -> Option<&Tried> {
        self.tried.iter().find(|tried| tried.outcome.is_ok())
    }

    /// Why none of them is used; none if one is.
    pub fn refusal(&self) -> Option<&Text> {
        if self.used().is_some() { None } else { self.tried.last()?.outcome.as_ref().err() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_what_tells_an_installation_from_others() {
        for (name, schema, prefix, expected) in [
            ("quartz", "public", "", "T"),
            ("quartz", "public", "qrtz_", "T qrtz"),
            ("quartz", "jobs", "", "T jobs"),
            ("quartz", "jobs", "qrtz_", "T jobs.qrtz"),
            ("pg_boss", "pgboss", "", "T"),
            ("pg_boss", "boss", "", "T boss"),
            ("pgmq", "pgmq", "mail", "T mail"),
            ("pgmq", "mine", "mail", "T mine.mail"),
        ] {
            let installation = Installation {
                adapter: Arc::new(Adapter { name: name.into(), title: "T".into(), ..Adapter::default() }),
                oid: 1,
                schema: schema.into(),
                prefix: prefix.into(),
                tables: BTreeMap::new(),
                version: None,
                refused: None,
                choices: Vec::new(),
                actions: Vec::new(),
                is_alone: false,
            };
            assert_eq!(installation.label(), expected);
            assert_eq!(Installation { is_alone: true, ..installation }.label(), "T");
        }
    }
}
