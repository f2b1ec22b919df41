//! What a statement locks, read from its text: which form it is, on which relations it takes which mode, and what it does meanwhile.
//!
//! Nothing is guessed: what is not in the tables of [`forms`] is not known. Functions, triggers and views are not looked into.

mod actions;
mod advisory;
mod catalog_forms;
mod control;
mod form;
mod forms;
mod name;
mod object;
mod pattern;
mod pieces;
mod query;
mod read;
pub mod redacted;
pub mod scan;
pub mod script;
pub mod secrets;
#[cfg(test)]
mod tests;
pub mod token;

use std::fmt;

pub use advisory::{Act, Advisory};
pub use control::Control;
pub use form::{Also, Form, Role, Work};
pub use name::Relation;
pub use object::{KINDS, Object};
pub use pieces::Unknown;
use read::{of_query, read, unwrapped};
use token::tokens;

use super::lock::LockMode;

/// The longest text that is read, in bytes.
pub const LONGEST: usize = 1 << 18;

/// A statement that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statement {
    /// Its forms: one, or that of each action of ALTER TABLE.
    pub forms: Vec<&'static Form>,
    /// What it is called: `ALTER TABLE … ADD COLUMN, DROP COLUMN`.
    pub name: String,
    /// What it takes, in the order of the text; each relation or object once, with the strongest mode.
    pub takes: Vec<Take>,
    /// What it takes beyond that; whether only by foreign keys of the names below.
    pub also: Vec<(Also, bool)>,
    /// Constraints and columns that it names, as far as the above asks for them.
    pub names: Vec<String>,
    /// Relations that it creates.
    pub created: Vec<Relation>,
    /// Its calls of functions for advisory locks.
    pub calls: Vec<Advisory>,
    /// What it does to its transaction or to the settings.
    pub control: Option<Control>,
    /// Whether it waits at all.
    pub nowait: Nowait,
    /// Whether IF EXISTS makes what is missing no error.
    pub if_exists: bool,
    /// Locks that are not known from its text, in words.
    pub unseen: Vec<&'static str>,
}

/// What a statement does instead of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nowait {
    /// It waits.
    #[default]
    Waits,
    /// LOCK TABLE … NOWAIT: it fails.
    Fails,
    /// FOR UPDATE NOWAIT: it fails if a row is locked, and waits for the table.
    Rows,
    /// FOR UPDATE SKIP LOCKED: it leaves out rows that are locked, and waits for the table.
    SkipLocked,
}

/// What is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A relation, as the statement names it.
    Relation(Relation),
    /// Another object.
    Object(Object),
    /// An advisory lock.
    Advisory(Advisory),
    /// The queue of notifications of the whole server, at commit.
    Notifications,
}

impl fmt::Display for Target {
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

/// What a statement takes on one relation or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// What is locked.
    pub target: Target,
    /// The strongest mode that the statement takes on it.
    pub mode: LockMode,
    /// For an index: what is taken on its table.
    pub on_table_of_index: Option<LockMode>,
    /// Whether it is the one that the statement is about: what it rewrites or reads.
    pub is_subject: bool,
    /// The first major version that takes it; 0: all.
    pub since: u32,
    /// Whether it is taken only if it exists: the statement does not fail otherwise.
    pub is_optional: bool,
}

impl Take {
    /// The relation, if it is one.
    pub fn relation(&self) -> Option<&Relation> {
        match &self.target {
            Target::Relation(relation) => Some(relation),
            _ => None,
        }
    }
}

impl Statement {
    /// The mode that it takes on a relation of this name, `orders` or `shop.orders`.
    pub fn mode_on(&self, shown: &str) -> Option<LockMode> {
        let is_it = |take: &&Take| take.relation().is_some_and(|relation| relation.is_called(shown));
        self.takes.iter().find(is_it).map(|take| take.mode)
    }

    /// The first major version that has all of it.
    pub fn since(&self) -> u32 {
        self.forms.iter().map(|form| form.since).max().unwrap_or_default()
    }

    /// For which transactions it waits beside those that have a mode in its way: those that hold one which conflicts with this.
    pub fn waits_for(&self) -> Option<LockMode> {
        self.forms.iter().find_map(|form| form.waits_for)
    }

    /// Whether it waits for all older snapshots of the database.
    pub fn waits_for_snapshots(&self) -> bool {
        self.forms.iter().any(|form| form.waits_for_snapshots)
    }

    /// Whether it cannot run in a transaction block.
    pub fn is_alone(&self) -> bool {
        self.forms.iter().any(|form| form.alone)
    }

    /// Whether it reads or changes rows, and locks single ones of them.
    pub fn is_query(&self) -> bool {
        self.forms.iter().all(|form| form.work == Work::Rows)
    }
}

/// A statement of a text, as far as it is understood.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The line of its first word, from 1 on.
    pub line: usize,
    /// What it is.
    pub read: Result<Statement, Unknown>,
}

/// Each statement of a text: what stands between semicolons. What is behind [`LONGEST`] bytes is not read.
pub fn statements(text: &str) -> Vec<Piece> {
    let text = beginning(text, LONGEST);
    let tokens = tokens(text);
    let mut lines = pieces::Lines::of(text);
    let pieces = pieces::pieces(&tokens).into_iter();
    pieces
        .filter_map(|tokens| {
            let line = lines.line(tokens.first()?.at);
            Some(Piece { line, read: read(tokens) })
        })
        .collect()
}

/// The first statement of a text, of which the server may have kept a part alone; no more of it is read than the first of so many bytes.
pub fn first(text: &str, bytes: usize) -> Option<Statement> {
    let tokens = tokens(beginning(text, bytes));
    let first = name::split(&tokens, ';').into_iter().find(|tokens| !tokens.is_empty())?;
    let first = unwrapped(first);
    if query::begins(first.first()?) { Some(of_query(query::query(first), None)) } else { read(first).ok() }
}

/// Every form, with a statement of it on the tables of the tests; an empty one where it takes more than one statement to get there.
pub fn forms() -> Vec<(&'static Form, String)> {
    let statements = forms::QUERIES.into_iter().chain(forms::STATEMENTS).chain(catalog_forms::STATEMENTS);
    let mut found: Vec<_> = statements.map(|form| (form, form.example.to_owned())).collect();
    for form in actions::ACTIONS {
        let is_whole = ["ALTER TABLE", "ALTER FOREIGN"].iter().any(|head| form.example.starts_with(head));
        let head = if is_whole || form.example.is_empty() { "" } else { "ALTER TABLE t " };
        found.push((form, format!("{head}{}", form.example)));
    }
    found
}

/// The beginning of a text, of at most so many bytes.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
