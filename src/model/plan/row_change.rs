//! A change of one row of a table: the statement is planned here, and the executor sends it.
//!
//! The table is first looked up by its OID; the statement changes the row only if everything seen of it is unchanged.

use std::collections::BTreeMap;

use super::{TargetKind, Verb};
use crate::model::Text;

pub(crate) struct RowChange<'a> {
    pub(crate) table: u32,
    pub(crate) is_own: bool,
    pub(crate) short: String,
    /// Builds the statement for the table as it is now, or returns why the change is impossible.
    pub(crate) statement: Box<Statement<'a>>,
}

type Statement<'a> = dyn Fn(&FoundTable) -> Result<RowStatement, String> + Send + Sync + 'a;

impl Verb {
    /// `None` if the target is not a row of a table, or the verb does not apply to it.
    pub(crate) fn row_change(self, what: &TargetKind) -> Option<RowChange<'_>> {
        let definition = self.definition();
        match what {
            TargetKind::Task(task) => definition.task.map(|does| does.change(self, task)),
            TargetKind::Item(item) => definition.item.map(|does| does.change(self, item)),
            TargetKind::Lease(lease) => definition.lease.map(|change| change(lease)),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct FoundTable {
    /// The schema, quoted for use in a statement.
    pub(crate) schema: String,
    pub(crate) columns: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Zoned,
    Time,
    Date,
    Interval,
    Number,
    Other,
}

impl FoundTable {
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// `None` if there is no such column.
    pub(crate) fn kind(&self, column: &str) -> Option<ColumnKind> {
        self.columns.get(column).map(|oid| match oid {
            1184 => ColumnKind::Zoned,
            1114 => ColumnKind::Time,
            1082 => ColumnKind::Date,
            1186 => ColumnKind::Interval,
            20 | 21 | 23 | 700 | 701 | 1700 => ColumnKind::Number,
            _ => ColumnKind::Other,
        })
    }
}

pub(crate) struct RowStatement {
    pub(crate) id: RowKey,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) act: RowAct,
    pub(crate) done: String,
}

pub(crate) enum RowKey {
    Number(i64),
    Text(Text),
}

/// What must be unchanged: the message if it is not, and the condition on the row `t`.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) is: Is,
}

pub(crate) enum Is {
    Text(&'static str, Option<Text>),
    /// The same for a text that was truncated if it was long.
    Cut(&'static str, Option<Text>),
    /// SQL without any text read from the server.
    Sql(String),
}

impl Condition {
    pub(crate) fn new(name: &'static str, sql: impl Into<String>) -> Self {
        Self { name, is: Is::Sql(sql.into()) }
    }

    /// The column must have this value, which may be NULL.
    pub(crate) fn same(name: &'static str, column: &str, value: &str) -> Self {
        Self::new(name, format!("{column} IS NOT DISTINCT FROM {value}"))
    }

    /// The text must match the one that was read, which was truncated if it was long.
    pub(crate) fn cut(name: &'static str, column: &'static str, value: Option<&Text>) -> Self {
        Self { name, is: Is::Cut(column, value.cloned()) }
    }
}

pub(crate) enum RowAct {
    /// Sets columns; the audit row is made from what is returned.
    Set { set: String, returning: String, noted: Option<Noted> },
    /// Sets columns if no session holds the advisory key; `None` if no worker can be working on the row.
    SetWhileFree { set: String, key: Option<i64> },
    /// A function of the schema does it or returns why not. Its arguments are the id of the row, which is locked, and the
    /// requester.
    Call(&'static str),
    /// A function of the schema does it to the row `t`, which is locked, and returns whether it did. The audit row is made from
    /// these columns, as text.
    Try { function: &'static str, arguments: &'static str, columns: &'static [&'static str], noted: Noted },
}

/// An audit row in locktop's own schema for each changed row `d`: the action, columns of the audit table, and their values.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    pub(crate) action: &'static str,
    pub(crate) columns: &'static str,
    pub(crate) values: &'static str,
}
