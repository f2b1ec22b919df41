//! Whose tables, views, functions and schemas are read, called and written: those of superusers, of the role that is connected, and of
//! roles that somebody named. See `docs/security.md`.
//!
//! To plan a statement is to run what its tables' owners wrote: the planner evaluates immutable functions in predicates and expressions
//! of indexes, in statistics objects and partition keys, whatever the statement asks for and whether or not a row is there
//! (`eval_const_expressions`, `RelationGetIndexPredicate` and `get_relation_statistics` in the server's sources). A trigger runs at a
//! write. So a statement touches only what trusted owners have, and that is checked in the transaction in which it runs, after the table is
//! locked: from then on nobody can put something else in its place.

use std::sync::Arc;

use postgres_protocol::escape::escape_literal;
use tokio_postgres::error::DbError;

use crate::sql::{PATH, fill, without_comments};

/// `pg_database_owner`, whose one member is whoever owns the database (`src/include/catalog/pg_authid.dat`).
const DATABASE_OWNER: u32 = 6171;

/// One table, before it is read or written.
const TABLE: &str = include_str!("../assets/sql/trust/table.sql");
/// A schema with all that is in it.
const SCHEMA: &str = include_str!("../assets/sql/trust/schema.sql");
/// Who owns what a trigger runs.
const RUNS: &str = include_str!("../assets/sql/trust/runs.sql");
/// The tables that a statement has named.
const LOCKED: &str = include_str!("../assets/sql/trust/locked.sql");
/// The types of columns.
const TYPES: &str = include_str!("../assets/sql/trust/types.sql");
/// A search path of schemas that are trusted.
const TRUSTED_PATH: &str = include_str!("../assets/sql/trust/path.sql");
/// How the error of a guard begins, in the value that the server repeats.
pub const MARK: &str = "locktop: ";

/// What allows it, to follow what belongs to whom.
#[must_use]
pub fn remedy(owner: &str) -> String {
    format!("--trust-owner {owner}, or trusted_owners = [\"{owner}\"] in the config, permits it")
}

/// Roles whose tables and functions are used as if they were ours, beside superusers and the role that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedOwners(Arc<[String]>);

impl FromIterator<String> for TrustedOwners {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

impl TrustedOwners {
    /// The names, as in the catalog.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The names as an array of SQL.
    fn array(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|name| escape_literal(&name.replace('\0', ""))).collect();
        format!("ARRAY[{}]::pg_catalog.text[]", names.join(", "))
    }

    /// Whether the role with this OID, an expression of SQL, is trusted. The role that is connected is the one that logged in, not the
    /// one that it has become since: who owns a database may have every session begin with another role (`ALTER DATABASE … SET
    /// role`), and what runs in one that was a superuser's may become that superuser again. The owner of `public` is `pg_database_owner` from 15 on, which
    /// means whoever owns the database.
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

    /// What the role with this OID, an expression of SQL, is called: the one that would have to be named.
    #[must_use]
    pub fn name(oid: &str) -> String {
        format!(
            "pg_catalog.pg_get_userbyid(CASE WHEN {oid} = {DATABASE_OWNER} THEN (SELECT td.datdba FROM pg_catalog.pg_database AS td \
             WHERE td.datname = pg_catalog.current_database()) ELSE {oid} END)"
        )
    }

    /// A statement without its comments and with these values, in which `$trusts(c.relowner)` is whether the role
    /// with this OID is trusted, and `$owner(c.relowner)` what it is called.
    #[must_use]
    pub fn filled(&self, sql: &str, values: &[(&str, &str)]) -> String {
        let sql = without_comments(sql);
        let own = values.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let trusted = calls(&sql, "$trusts(").map(|(call, oid)| (call, self.trusts(oid)));
        let named = calls(&sql, "$owner(").map(|(call, oid)| (call, Self::name(oid)));
        // At once: what a value has of the kind is none of the statement's.
        let all: Vec<_> = own.chain(trusted).chain(named).collect();
        fill(&sql, &all)
    }

    /// A table expression for `WITH RECURSIVE`, `types (relation, oid)`: the types that the columns of some relations are made of, beside the
    /// server's own. `of` is a table expression before it, with a column `oid`.
    #[must_use]
    pub fn types(&self, of: &str) -> String {
        self.filled(TYPES, &[("$of", of)])
    }

    /// A statement that fails unless the table of this OID has this name, is an ordinary or partitioned one, and belongs, with its
    /// schema and its partitions, to trusted owners. Where it is to be written, what its triggers run
    /// too: then it has to be locked so that nobody can make another one (ROW EXCLUSIVE). To be sent
    /// in the transaction of what follows, after the table was locked by that name. The name is two literals.
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

    /// A statement that fails unless the schema of this name, a literal, and all that is in it belong to trusted owners, and nobody else
    /// may put anything there, or make a trigger on its tables. A schema that is not there passes.
    #[must_use]
    pub fn schema_guard(&self, schema: &str) -> String {
        let runs = without_comments(RUNS);
        self.filled(SCHEMA, &[("$schema", schema), ("$runs", &runs), ("$mark", MARK)])
    }

    /// A statement that fails where a table that this transaction has locked belongs to somebody else. A statement locks what it names as
    /// soon as it is understood, before it is planned (`parserOpenTable` and `AcquireRewriteLocks`): behind PREPARE it tells what a query
    /// of the config would read.
    #[must_use]
    pub fn locked_guard(&self) -> String {
        self.filled(LOCKED, &[("$types", &self.types("named")), ("$mark", MARK)])
    }

    /// A statement that sets the search path, for the transaction or the session, to those schemas of the role's own one that are trusted.
    #[must_use]
    pub fn trusted_path(&self, is_local: bool) -> String {
        let is_local = if is_local { "true" } else { "false" };
        self.filled(TRUSTED_PATH, &[("$path", PATH), ("$is_local", is_local)])
    }
}

/// The calls in a statement that begin so, each whole and with its argument.
fn calls<'a>(sql: &'a str, begin: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    sql.match_indices(begin).filter_map(move |(at, _)| {
        let (argument, _) = sql.get(at + begin.len()..)?.split_once(')')?;
        Some((sql.get(at..=at + begin.len() + argument.len())?, argument))
    })
}

/// What a guard found and what helps, where this error of the server's is one of a guard: its message repeats the value, whatever
/// the language.
#[must_use]
pub fn untrusted(error: &DbError) -> Option<String> {
    found(error.code().code(), error.message())
}

fn found(code: &str, message: &str) -> Option<String> {
    if code != "22P02" {
        return None;
    }
    let (_, found) = message.split_once(MARK)?;
    // What the server's own words put behind the value: a quotation mark of some kind.
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
