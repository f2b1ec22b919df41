//! Where the tables of an adapter are, and which of its queries may run there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Adapter, Part};
use crate::model::Text;

/// An installation, and what may be read of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    /// Of what.
    pub adapter: Arc<Adapter>,
    /// The OID of its first table: what identifies it.
    pub oid: u32,
    /// Its schema.
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
}

/// The alternatives of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Of what.
    pub part: Part,
    /// In the order of the file, up to the one that is used.
    pub tried: Vec<Tried>,
}

/// An alternative.
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
    /// `GoodJob`, and where it is not in schema `public` or one that is called as the system is, or has a prefix, which one: `River jobs`.
    #[must_use]
    pub fn label(&self) -> String {
        let title = &self.adapter.title;
        let is_its_own =
            *self.schema == *self.adapter.name || *self.schema == self.adapter.name.replace('_', "");
        match (&*self.schema, &*self.prefix) {
            ("public", "") => title.to_string(),
            (_, "") if is_its_own => title.to_string(),
            (schema, "") => format!("{title} {schema}"),
            (_, prefix) if is_its_own => format!("{title} {prefix}"),
            (schema, prefix) => format!("{title} {schema}.{prefix}"),
        }
    }

    /// What is read of a part.
    #[must_use]
    pub fn choice(&self, part: Part) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.part == part)
    }
}

impl Choice {
    /// The alternative that is used; none where none of them may run.
    #[must_use]
    pub fn used(&self) -> Option<&Tried> {
        self.tried.iter().find(|tried| tried.outcome.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_what_tells_an_installation_from_others() {
        for (name, schema, prefix, expected) in [
            ("quartz", "public", "", "T"),
            ("quartz", "public", "qrtz_", "T public.qrtz_"),
            ("quartz", "jobs", "", "T jobs"),
            ("quartz", "jobs", "qrtz_", "T jobs.qrtz_"),
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
            };
            assert_eq!(installation.label(), expected);
        }
    }
}
