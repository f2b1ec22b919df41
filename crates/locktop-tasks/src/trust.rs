//! The owners whose tables, views, functions and schemas locktop reads, calls and writes: superusers, the connected
//! role, and roles named as trusted. See `docs/security.md`.
//!
//! Planning a statement already runs code of the table owners: the planner evaluates immutable functions in predicates
//! and expressions of indexes, in statistics objects and partition keys, even if no row exists
//! (`eval_const_expressions`, `RelationGetIndexPredicate` and `get_relation_statistics` in the server sources).
//! Triggers run on writes. So a statement only touches objects of trusted owners. This is checked in the same
//! transaction, after the table is locked, so that no other object can take its place.

use std::sync::Arc;

use postgres_protocol::escape::escape_literal;
use tokio_postgres::error::DbError;

use crate::sql::{PATH, fill, without_comments};

/// `pg_database_owner`, whose only member is the database owner (`src/include/catalog/pg_authid.dat`).
const DATABASE_OWNER: u32 = 6171;

const TABLE: &str = include_str!("../assets/sql/trust/table.sql");
const SCHEMA: &str = include_str!("../assets/sql/trust/schema.sql");
const RUNS: &str = include_str!("../assets/sql/trust/runs.sql");
const LOCKED: &str = include_str!("../assets/sql/trust/locked.sql");
const TYPES: &str = include_str!("../assets/sql/trust/types.sql");
const TRUSTED_PATH: &str = include_str!("../assets/sql/trust/path.sql");
/// Prefix of a guard's error, in the value that the server repeats in its message.
pub const MARK: &str = "locktop: ";

/// The setting that permits objects of this owner, as the end of an error message.
#[must_use]
pub fn remedy(owner: &str) -> String {
    format!("--trust-owner {owner}, or trusted_owners = [\"{owner}\"] in the config, permits it")
}

/// Roles whose tables and functions locktop uses, in addition to superusers and the connected role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedOwners(Arc<[String]>);

impl FromIterator<String> for TrustedOwners {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

impl TrustedOwners {
    /// The role names, as in the catalog.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    fn array(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|name| escape_literal(&name.replace('\0', ""))).collect();
        format!("ARRAY[{}]::pg_catalog.text[]", names.join(", "))
    }

    /// SQL condition: the role with this OID (an SQL expression) is trusted. The connected role is `session_user`: a
    /// database owner can make each session start with another role (`ALTER DATABASE … SET role`), and code in a
    /// superuser's session can switch back to the superuser. Since PostgreSQL 15 the owner of `public` is
    /// `pg_database_owner`, which represents the database owner.
    #[must_use]
    pub fn trusts(&self, oid: &str) -> String {
        format!(
            "EXISTS (SELECT FROM pg_catalog.pg_roles AS tr WHERE tr.oid = \
             CASE WHEN {oid} = {DATABASE_OWNER} THEN (SELECT td.datdba FROM pg_catalog.pg_database AS td \
             WHERE td.datname = pg_catalog.current_database()) ELSE {oid} END \
             AND (tr.rolsuper OR tr.rolname = session_user OR tr.rolname::pg_catalog.text = ANY ({})))",
            self.array()
        )
    }

    /// SQL expression for the name of the role with this OID (an SQL expression), as it has to be listed to be trusted.
    #[must_use]
    pub fn name(oid: &str) -> String {
        format!(
            "pg_catalog.pg_get_userbyid(CASE WHEN {oid} = {DATABASE_OWNER} THEN (SELECT td.datdba FROM pg_catalog.pg_database AS td \
             WHERE td.datname = pg_catalog.current_database()) ELSE {oid} END)"
        )
    }

    /// A statement without its comments and with these values. `$trusts(c.relowner)` becomes the condition that the role
    /// with this OID is trusted, `$owner(c.relowner)` its name.
    #[must_use]
    pub fn filled(&self, sql: &str, values: &[(&str, &str)]) -> String {
        let sql = without_comments(sql);
        let own = values.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let trusted = calls(&sql, "$trusts(").map(|(call, oid)| (call, self.trusts(oid)));
        let named = calls(&sql, "$owner(").map(|(call, oid)| (call, Self::name(oid)));
        // In one pass: placeholders inside a value are not replaced.
        let all: Vec<_> = own.chain(trusted).chain(named).collect();
        fill(&sql, &all)
    }

    /// A table expression for `WITH RECURSIVE`, `types (relation, oid)`: the types that the columns of some relations are
    /// made of, except the server's built-in types. `of` is an earlier table expression with a column `oid`.
    #[must_use]
    pub fn types(&self, of: &str) -> String {
        self.filled(TYPES, &[("$of", of)])
    }

    /// A statement that fails unless the table with this OID has this name, is an ordinary or partitioned table, and
    /// belongs, with its schema and its partitions, to trusted owners. If the table is to be written, the code that its
    /// triggers run is checked too; then the table lock must prevent new triggers (ROW EXCLUSIVE). Send it in the
    /// transaction of the statements that follow, after locking the table by that name. Schema and name are SQL literals.
    #[must_use]
    pub fn table_guard(&self, oid: &str, schema: &str, name: &str, is_written: bool) -> String {
        let is_written = if is_written { "true" } else { "false" };
        let runs = without_comments(RUNS);
        let values = [
            ("$oid", oid),
            ("$schema", schema),
            ("$name", name),
            ("$is_written", is_written),
            ("$runs", &runs),
            ("$mark", MARK),
        ];
        self.filled(TABLE, &values)
    }

    /// A statement that fails unless the schema of this name (an SQL literal) and everything in it belong to trusted
    /// owners, and no other role may create objects in it or triggers on its tables. A missing schema passes.
    #[must_use]
    pub fn schema_guard(&self, schema: &str) -> String {
        let runs = without_comments(RUNS);
        self.filled(SCHEMA, &[("$schema", schema), ("$runs", &runs), ("$mark", MARK)])
    }

    /// A statement that fails if this transaction has locked a table of an untrusted owner. The server locks the tables of
    /// a statement during parse analysis, before planning (`parserOpenTable` and `AcquireRewriteLocks`): after PREPARE,
    /// this checks the tables that a query from the config would read.
    #[must_use]
    pub fn locked_guard(&self) -> String {
        self.filled(LOCKED, &[("$types", &self.types("named")), ("$mark", MARK)])
    }

    /// A statement that sets the search path, for the transaction or the session, to the trusted schemas of the role's own
    /// path.
    #[must_use]
    pub fn trusted_path(&self, is_local: bool) -> String {
        let is_local = if is_local { "true" } else { "false" };
        self.filled(TRUSTED_PATH, &[("$path", PATH), ("$is_local", is_local)])
    }
}

/// Calls in a statement that start with `begin`: the whole call and its argument.
fn calls<'a>(sql: &'a str, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    sql.match_indices(begin).filter_map(move |(at, _)| {
        let (argument, _) = sql.get(at + begin.len()..)?.split_once(')')?;
        Some((sql.get(at..=at + begin.len() + argument.len())?, argument))
    })
}

/// The finding of a guard and the remedy, if the server's error comes from a guard. The message repeats the value in
/// every language.
#[must_use]
pub fn untrusted(error: &DbError) -> Option<String> {
    found(error.code().code(), error.message())
}

fn found(code: &str, message: &str) -> Option<String> {
    if code != "22P02" {
        return None;
    }
    let (_, found) = message.split_once(MARK)?;
    // The server's message ends with a closing quotation mark, which depends on the language.
    let found = found.strip_suffix(['"', '»', '”', '“', '«', '」', '\'']).unwrap_or(found).trim_end();
    Some(match found.rsplit_once(" belongs to ") {
        Some((_, owner)) => format!("{found}, who is not trusted; {}", remedy(owner)),
        None => found.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_words_around_a_reason_are_dropped() {
        for (code, message, expected) in [
            (
                "22P02",
                "invalid input syntax for type integer: \"locktop: it has changed\"",
                Some("it has changed"),
            ),
            (
                "22P02",
                "ungültige Eingabesyntax für Typ integer: »locktop: it has changed«",
                Some("it has changed"),
            ),
            (
                "22P02",
                "invalid input syntax for type integer: \"locktop: table a.b belongs to c\"",
                Some(
                    "table a.b belongs to c, who is not trusted; \
                     --trust-owner c, or trusted_owners = [\"c\"] in the config, permits it",
                ),
            ),
            ("22P02", "invalid input syntax for type integer: \"x\"", None),
            ("42501", "locktop: it has changed", None),
        ] {
            assert_eq!(found(code, message).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn names_cannot_leave_their_literal() {
        let owners: TrustedOwners =
            ["a'b".to_owned(), "c\\d".to_owned(), "e\0f".to_owned()].into_iter().collect();
        assert_eq!(owners.array(), "ARRAY['a''b',  E'c\\\\d', 'ef']::pg_catalog.text[]");
        assert_eq!(TrustedOwners::default().array(), "ARRAY[]::pg_catalog.text[]");
    }
}
