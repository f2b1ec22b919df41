//! A table by name and OID, in SQL.

use std::fmt::Write as _;

use postgres_protocol::escape::{escape_identifier, escape_literal};

use crate::pg::sql::guard;

#[derive(Debug, Clone, Copy)]
pub(in crate::pg) struct Named<'a> {
    pub(in crate::pg) oid: u32,
    pub(in crate::pg) schema: &'a str,
    pub(in crate::pg) name: &'a str,
    pub(in crate::pg) is_partitioned: bool,
}

impl Named<'_> {
    pub(in crate::pg) fn sql(&self) -> String {
        format!("{}.{}", escape_identifier(self.schema), escape_identifier(self.name))
    }

    /// For reading. With `ONLY`, since tables that inherit from it may have any owner; not for a partitioned table.
    pub(in crate::pg) fn source(&self) -> String {
        let only = if self.is_partitioned { "" } else { "ONLY " };
        format!("{only}{}", self.sql())
    }

    pub(in crate::pg) fn literals(&self) -> [String; 3] {
        [self.oid.to_string(), escape_literal(self.schema), escape_literal(self.name)]
    }
}

/// Locks tables in the mode that reading takes.
pub(in crate::pg) fn locked(tables: &[Named<'_>]) -> String {
    tables.iter().fold(String::new(), |mut sql, table| {
        let _ = write!(sql, "\nLOCK TABLE {} IN ACCESS SHARE MODE;", table.source());
        sql
    })
}

/// The same, and then checks each table again: the table that was checked is the one that is planned. The guard must be
/// prepared where this is sent ([`crate::pg::sql::prepare_guard`]): planning it takes ten times as long as running it.
pub(in crate::pg) fn guarded(tables: &[Named<'_>]) -> String {
    tables.iter().fold(locked(tables), |mut sql, table| {
        let _ = write!(sql, "\nEXECUTE {}({});", guard(), table.literals().join(", "));
        sql
    })
}
