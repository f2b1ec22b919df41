//! What is done to a row of a table: planned here, as far as its statement goes, and sent by whoever carries it out.
//!
//! The table is looked up by its OID before; the statement changes the row only if all that was seen of it is so still.

use std::collections::BTreeMap;

use super::{TargetKind, Verb};
use crate::model::Text;

/// A change of one row of a table.
pub(crate) struct RowChange<'a> {
    /// `pg_class.oid` of its table.
    pub(crate) table: u32,
    /// Whether that is of locktop's own schema.
    pub(crate) is_own: bool,
    /// What is going to be asked, in short: for the record.
    pub(crate) short: String,
    /// The statement, by how the table is now, or why that cannot be done to a row of it.
    pub(crate) statement: Box<Statement<'a>>,
}

type Statement<'a> = dyn Fn(&FoundTable) -> Result<RowStatement, String> + Send + Sync + 'a;

impl Verb {
    /// What it changes; none for what is no row of a table, or not for this verb.
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

/// A table as it is now.
#[derive(Debug)]
pub(crate) struct FoundTable {
    /// Its schema, quoted as a statement needs it.
    pub(crate) schema: String,
    /// Its columns, with the OIDs of their types.
    pub(crate) columns: BTreeMap<String, u32>,
}

/// What a type of a column is.
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

    /// None where there is no such column.
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

/// A statement about a row `t`.
pub(crate) struct RowStatement {
    pub(crate) id: RowKey,
    /// What has to be as it was seen.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) act: RowAct,
    /// What came of it once the server has done it.
    pub(crate) done: String,
}

/// The id of a row: a number, or a column of any type as text.
pub(crate) enum RowKey {
    Number(i64),
    Text(Text),
}

/// What has to be as it was seen: what it is called when it is not, and what is true of the row `t` when it is.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) is: Is,
}

/// How something is compared with what was seen.
pub(crate) enum Is {
    /// An expression is this text, as it was read.
    Text(&'static str, Option<Text>),
    /// The same, where it was cut if it was long.
    Cut(&'static str, Option<Text>),
    /// SQL: no text of the server's is in it.
    Sql(String),
}

impl Condition {
    pub(crate) fn new(name: &'static str, sql: impl Into<String>) -> Self {
        Self { name, is: Is::Sql(sql.into()) }
    }

    /// A column that has to have this value, NULL being one.
    pub(crate) fn same(name: &'static str, column: &str, value: &str) -> Self {
        Self::new(name, format!("{column} IS NOT DISTINCT FROM {value}"))
    }

    /// A text that has to be the one that was read, which was cut if it was long.
    pub(crate) fn cut(name: &'static str, column: &'static str, value: Option<&Text>) -> Self {
        Self { name, is: Is::Cut(column, value.cloned()) }
    }
}

/// What is done to a row.
pub(crate) enum RowAct {
    /// Columns are set; the row of the audit is made of what is returned.
    Set { set: String, returning: String, noted: Option<Noted> },
    /// Columns are set if nobody holds an advisory key; none is asked for where no worker may be at it.
    SetWhileFree { set: String, key: Option<i64> },
    /// A function of the schema does it, or says why not: by the id of the row, which is locked, and who wants it.
    Call(&'static str),
    /// A function of the schema does it to the row `t`, which is locked, and answers whether it did. The row of the audit is made of
    /// these columns, as text.
    Try { function: &'static str, arguments: &'static str, columns: &'static [&'static str], noted: Noted },
}

/// A row of the audit of locktop's own schema, for each row `d` that was changed: what was done, columns of the audit, their values.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    pub(crate) action: &'static str,
    pub(crate) columns: &'static str,
    pub(crate) values: &'static str,
}
