//! The locks of a statement, from its text: its form, its relations and modes, and what it does meanwhile.
//!
//! Nothing is guessed: what is not in the tables of [`forms`] is unknown. Functions, triggers and views are not examined.

mod advisory;
mod catalog_forms;
mod form;
mod forms;
mod object;
mod pattern;
mod pieces;
mod query;
mod read;
pub mod redacted;
pub mod scan;
pub mod script;
pub mod tags;
#[cfg(test)]
mod tests;
pub mod token;

use std::fmt;

pub use advisory::{Act, Advisory};
pub use form::{Also, Form, Role, StatementWork};
pub use object::{KINDS, Object, ObjectKind};
pub use pieces::Unknown;
use read::{of_query, read, unwrapped};
pub use script::Control;
pub use token::Relation;
use token::tokens;

use crate::model::lock::LockMode;

/// Maximum length of a text that is read, in bytes.
pub const LONGEST: usize = 1 << 18;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// One form, or one for each action of ALTER TABLE.
    pub forms: Vec<&'static Form>,
    /// `ALTER TABLE … ADD COLUMN, DROP COLUMN`, for example.
    pub name: String,
    /// Locks in the order of the text; each relation or object once, with the strongest mode.
    pub takes: Vec<StatementLock>,
    /// Locks on further relations; the flag is true if only foreign keys in `names` count.
    pub also: Vec<(Also, bool)>,
    /// Constraints and columns in the statement, as far as `also` needs them.
    pub names: Vec<String>,
    pub created: Vec<Relation>,
    pub calls: Vec<Advisory>,
    pub control: Option<Control>,
    pub nowait: Nowait,
    /// Whether a missing object is not an error because of IF EXISTS.
    pub if_exists: bool,
    /// Locks that the text does not show, in words.
    pub unseen: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nowait {
    #[default]
    Waits,
    /// LOCK TABLE … NOWAIT: the statement fails.
    Fails,
    /// FOR UPDATE NOWAIT: the statement fails if a row is locked, but waits for the table.
    Rows,
    /// FOR UPDATE SKIP LOCKED: the statement skips locked rows, but waits for the table.
    SkipLocked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementTarget {
    Relation(Relation),
    Object(Object),
    Advisory(Advisory),
    /// The notification queue of the whole server, at commit.
    Notifications,
}

impl fmt::Display for StatementTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relation(relation) => relation.fmt(f),
            Self::Object(object) => object.fmt(f),
            Self::Advisory(call) => match call.key {
                Some(key) => write!(f, "advisory lock {key}"),
                None => write!(f, "advisory lock {}", call.arguments),
            },
            Self::Notifications => f.write_str("the queue of notifications"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementLock {
    pub target: StatementTarget,
    pub mode: LockMode,
    /// The mode on the table of an index.
    pub on_table_of_index: Option<LockMode>,
    /// Whether it is the main relation of the statement: the one it rewrites or reads.
    pub is_subject: bool,
    /// The first major version that takes it; 0: all versions.
    pub since: u32,
    /// Whether it is taken only if the object exists, and the statement does not fail otherwise.
    pub is_optional: bool,
}

impl StatementLock {
    pub fn relation(&self) -> Option<&Relation> {
        match &self.target {
            StatementTarget::Relation(relation) => Some(relation),
            _ => None,
        }
    }
}

impl Statement {
    /// The mode on a relation with this name, `orders` or `shop.orders`.
    pub fn mode_on(&self, shown: &str) -> Option<LockMode> {
        let is_it = |take: &&StatementLock| take.relation().is_some_and(|relation| relation.is_called(shown));
        self.takes.iter().find(is_it).map(|take| take.mode)
    }

    /// The first major version that supports all its forms.
    pub fn since(&self) -> u32 {
        self.forms.iter().map(|form| form.since).max().unwrap_or_default()
    }

    /// It also waits for transactions that hold a lock in a mode conflicting with this one.
    pub fn waits_for(&self) -> Option<LockMode> {
        self.forms.iter().find_map(|form| form.waits_for)
    }

    pub fn waits_for_snapshots(&self) -> bool {
        self.forms.iter().any(|form| form.waits_for_snapshots)
    }

    pub fn is_alone(&self) -> bool {
        self.forms.iter().any(|form| form.alone)
    }

    /// Whether it reads or changes rows, and so locks single rows.
    pub fn is_query(&self) -> bool {
        self.forms.iter().all(|form| form.work == StatementWork::Rows)
    }
}

#[derive(Debug, Clone)]
pub struct StatementPiece {
    /// Line of the first word, from 1.
    pub line: usize,
    pub read: Result<Statement, Unknown>,
}

/// The statements of a text, separated by semicolons. Text beyond [`LONGEST`] bytes is not read.
pub fn statements(text: &str) -> Vec<StatementPiece> {
    let text = beginning(text, LONGEST);
    let tokens = tokens(text);
    let mut lines = pieces::LineNumbers::of(text);
    let pieces = pieces::pieces(&tokens).into_iter();
    pieces
        .filter_map(|tokens| {
            let line = lines.line(tokens.first()?.at);
            Some(StatementPiece { line, read: read(tokens) })
        })
        .collect()
}

/// The first statement of a text that the server may have truncated; at most `bytes` bytes are read.
pub fn first(text: &str, bytes: usize) -> Option<Statement> {
    let tokens = tokens(beginning(text, bytes));
    let first = token::split(&tokens, ';').into_iter().find(|tokens| !tokens.is_empty())?;
    let first = unwrapped(first);
    if query::begins(first.first()?) { Some(of_query(query::query(first), None)) } else { read(first).ok() }
}

/// Every form with an example on the tables of the tests; the example is empty if it takes several statements.
pub fn forms() -> Vec<(&'static Form, String)> {
    let statements = forms::QUERIES.into_iter().chain(forms::STATEMENTS).chain(catalog_forms::STATEMENTS);
    let mut found: Vec<_> = statements.map(|form| (form, form.example.to_owned())).collect();
    for form in catalog_forms::ACTIONS {
        let is_whole = ["ALTER TABLE", "ALTER FOREIGN"].iter().any(|head| form.example.starts_with(head));
        let head = if is_whole || form.example.is_empty() { "" } else { "ALTER TABLE t " };
        found.push((form, format!("{head}{}", form.example)));
    }
    found
}

pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
