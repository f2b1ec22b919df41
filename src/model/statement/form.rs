//! What is known of a form of statement.

use strum::IntoStaticStr;

use crate::model::lock::LockMode;

/// What it does to the rows of its table while it has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Work {
    /// Nothing that takes longer for a larger table.
    Catalog,
    /// What it is asked to: some rows or all.
    Rows,
    /// Reads every row, and writes none.
    Reads,
    /// Reads all of it, and writes an index.
    BuildsIndex,
    /// Writes all of it anew, and its indexes.
    Rewrites,
    /// Writes all of it anew, unless something that the statement does not say makes that needless.
    MayRewrite,
    /// Makes it empty, in files of its own.
    Empties,
    /// Copies the files of its table.
    Copies,
}

impl Work {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The words for people, behind "it".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Catalog => "changes catalogs alone: it is short, once it has the lock",
            Self::Rows => "works on rows: it has the lock until its transaction ends",
            Self::Reads => "reads all of the table while it has the lock",
            Self::BuildsIndex => "reads all of the table and writes an index while it has the lock",
            Self::Rewrites => "writes all of the table and its indexes anew while it has the lock",
            Self::MayRewrite => "may write all of the table and its indexes anew while it has the lock",
            Self::Empties => "makes the table empty: it is short, once it has the lock",
            Self::Copies => "copies the files of the table while it has the lock",
        }
    }
}

/// A form of statement. `pattern` is in the language of the module `pattern`; for an action of ALTER TABLE it is that of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// What it is called: `ALTER TABLE … SET NOT NULL`.
    pub name: &'static str,
    pub(super) pattern: &'static str,
    /// What it takes on the relations of the pattern, in their order; the last counts for all that follow.
    pub modes: &'static [LockMode],
    /// What it takes on the table whose index it names.
    pub on_table_of_index: Option<LockMode>,
    /// The first major version that has it.
    pub since: u32,
    /// What it does to the rows meanwhile, and how long that takes.
    pub work: Work,
    /// It waits for all transactions that have the table locked in a mode which conflicts with this one, whatever it has itself.
    pub waits_for: Option<LockMode>,
    /// Whether it runs outside of a transaction block alone.
    pub alone: bool,
    /// Whether a query is part of it, behind AS.
    pub(super) has_query: bool,
    /// Whether REFERENCES and LIKE in it name other tables.
    pub(super) names_others: bool,
    /// What else is to be known.
    pub note: &'static str,
    /// What does the same and stops others less; empty where nothing does.
    pub advice: &'static str,
    /// One of the form, on the tables of the tests.
    pub example: &'static str,
}

impl Form {
    pub(super) const fn new(
        name: &'static str,
        pattern: &'static str,
        modes: &'static [LockMode],
        example: &'static str,
    ) -> Self {
        Self {
            name,
            pattern,
            modes,
            on_table_of_index: None,
            since: 14,
            work: Work::Catalog,
            waits_for: None,
            alone: false,
            has_query: false,
            names_others: false,
            note: "",
            advice: "",
            example,
        }
    }

    pub(super) const fn work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    pub(super) const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }

    pub(super) const fn waits_for(self, mode: LockMode) -> Self {
        Self { waits_for: Some(mode), alone: true, ..self }
    }

    pub(super) const fn on_table_of_index(self, mode: LockMode) -> Self {
        Self { on_table_of_index: Some(mode), ..self }
    }

    pub(super) const fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    pub(super) const fn query(self) -> Self {
        Self { has_query: true, ..self }
    }

    pub(super) const fn others(self) -> Self {
        Self { names_others: true, ..self }
    }

    pub(super) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(super) const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }
}
