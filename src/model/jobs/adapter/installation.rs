use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ActionKind, Adapter, AdapterAction, Part, Proof};
use crate::model::Text;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Installation {
    pub adapter: Arc<Adapter>,
    /// The OID of its first table, which identifies it.
    pub oid: u32,
    pub schema: Text,
    /// The prefix of its table names, if the adapter matches by suffix; or the suffix, if it has a table for each queue.
    pub prefix: Text,
    /// Its tables: the adapter's key, and `schema.table`.
    pub tables: BTreeMap<Text, Text>,
    pub version: Option<Text>,
    pub refused: Option<Text>,
    pub choices: Vec<QueryChoice>,
    pub actions: Vec<Rehearsal>,
    /// It is the only installation of this system, and a schema has at most one: its title identifies it.
    pub is_alone: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct QueryChoice {
    pub part: Part,
    /// In the order of the file, up to the one that is used.
    pub tried: Vec<Tried>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// Its number among those of its part in the file, from 1.
    pub number: usize,
    /// The cost of its plan, in the planner's units, or why the query is not used.
    pub outcome: Result<f64, Text>,
    /// Rows of the largest table that it reads, by the planner's estimate. None if that was not reached.
    pub size: Option<f64>,
    /// The result of reading it once. None if that was not tried.
    pub read: Option<Result<TrialReading, Text>>,
    /// The position of the error in the query, in characters from its beginning, if the server reported one.
    pub at: Option<usize>,
}

impl Tried {
    pub fn reading(&self) -> Option<&TrialReading> {
        self.read.as_ref()?.as_ref().ok()
    }

    /// Why it is not used, or could not be read.
    pub fn refusal(&self) -> Option<&Text> {
        self.outcome.as_ref().err().or_else(|| self.read.as_ref()?.as_ref().err())
    }
}

/// An acting statement that was prepared and planned, but not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    pub kind: ActionKind,
    pub number: usize,
    pub outcome: Result<(), Text>,
    pub at: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialReading {
    /// Rows returned; at most one more than are kept.
    pub rows: usize,
    /// Elapsed time at the client, in seconds.
    pub seconds: f64,
}

impl Installation {
    /// `GoodJob`; if there are several of a system, with a distinguishing part: `River jobs`, `Quartz qrtz`.
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

    /// False for a placeholder of tables that were not examined.
    pub fn is_somewhere(&self) -> bool {
        self.oid != 0
    }

    /// The action for a row, for a job by the proof of its loss: the first alternative whose tables all exist here.
    pub fn action(&self, kind: ActionKind, proof: Option<Proof>) -> Option<(usize, &AdapterAction)> {
        let is_here = |key: &Text| self.tables.contains_key(key);
        self.adapter.actions_of(kind).find(|(_, action)| {
            proof.is_none_or(|proof| action.proofs.contains(&proof))
                && action.needs.iter().all(|need| is_here(&need.table))
                && action.sql.tables().into_iter().all(is_here)
        })
    }

    pub fn choice(&self, part: Part) -> Option<&QueryChoice> {
        self.choices.iter().find(|choice| choice.part == part)
    }
}

impl QueryChoice {
    pub fn used(&self) -> Option<&Tried> {
        self.tried.iter().find(|tried| tried.outcome.is_ok())
    }

    pub fn refusal(&self) -> Option<&Text> {
        if self.used().is_some() { None } else { self.tried.last()?.outcome.as_ref().err() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_distinguishes_an_installation_from_others() {
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
                ..Installation::default()
            };
            assert_eq!(installation.label(), expected);
            assert_eq!(Installation { is_alone: true, ..installation }.label(), "T");
        }
    }
}
