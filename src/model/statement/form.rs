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

    /// The words for people, after "work".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Catalog => "changes only catalogs: short, once it has the lock",
            Self::Rows => "reads or changes rows",
            Self::Reads => "reads the whole table while it holds the lock",
            Self::BuildsIndex => "reads the whole table and builds an index while it holds the lock",
            Self::Rewrites => "rewrites the table and its indexes while it holds the lock",
            Self::MayRewrite => "may rewrite the table and its indexes while it holds the lock",
            Self::Empties => "empties the table: short, once it has the lock",
            Self::Copies => "copies the files of the table while it holds the lock",
        }
    }
}

/// Relations that a statement does not name, and the server finds by one that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Partitions and children of a table, and indexes of partitions, at any depth.
    Below,
    /// The same of a partitioned table only.
    Partitions,
    /// The tables that a view reads, at any depth.
    Base,
    /// The same of a materialized view, which are read when it is refreshed.
    Source,
    /// The partitioned table that it is a partition of.
    Parent,
    /// Tables that its foreign keys refer to.
    Referenced,
    /// Tables with foreign keys that refer to it.
    Referencing,
    /// The same, if they have an action beyond a check: CASCADE, SET NULL, SET DEFAULT.
    Cascading,
    /// Sequences that its columns own.
    Sequences,
    /// Views of it, at any depth.
    Views,
    /// Tables with a column of the type.
    Columns,
    /// Indexes of the table.
    Indexes,
}

/// What a statement locks beyond what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Also {
    /// Which relations.
    pub role: Role,
    /// None: the mode of the relation that is named.
    pub mode: Option<LockMode>,
    /// Only if the statement has this key word; empty: always.
    pub word: &'static str,
}

impl Also {
    pub(super) const fn same(role: Role) -> Self {
        Self { role, mode: None, word: "" }
    }

    pub(super) const fn of(role: Role, mode: LockMode) -> Self {
        Self { role, mode: Some(mode), word: "" }
    }

    pub(super) const fn with(self, word: &'static str) -> Self {
        Self { word, ..self }
    }
}

/// A form of statement. `pattern` is in the language of the module `pattern`; for an action of ALTER TABLE it is that of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own, most forms have none")]
pub struct Form {
    /// What it is called: `ALTER TABLE … SET NOT NULL`.
    pub name: &'static str,
    pub(super) pattern: &'static str,
    /// What it takes on the relations and objects of the pattern, in their order; the last counts for all that follow.
    pub modes: &'static [LockMode],
    /// From which version on it takes that, in the same order; always where none is given.
    pub(super) from: &'static [u32],
    /// What it takes on the table whose index it names.
    pub on_table_of_index: Option<LockMode>,
    /// What it takes beyond that.
    pub also: &'static [Also],
    /// Whether foreign keys count only if they have the name of the statement: a constraint, or a column of it.
    pub(super) by_name: bool,
    /// What it always takes: the key words of a kind, or none for a catalog; the name; the mode.
    pub(super) fixed: Option<(&'static str, &'static str, LockMode)>,
    /// The first major version that has it.
    pub since: u32,
    /// What it does to the rows meanwhile, and how long that takes.
    pub work: Work,
    /// It waits for all transactions that have the table locked in a mode which conflicts with this one, whatever it has itself.
    pub waits_for: Option<LockMode>,
    /// Whether it waits for all transactions of the database that have an older snapshot.
    pub waits_for_snapshots: bool,
    /// Whether it cannot run in a transaction block.
    pub alone: bool,
    /// The word after which a query is part of it; empty without one.
    pub(super) query: &'static str,
    /// Whether the query is run: planned only, it locks no tables below a view.
    pub(super) runs: bool,
    /// Whether REFERENCES and LIKE in it name other tables.
    pub(super) names_others: bool,
    /// Whether what it creates may exist: then that is locked in `AccessExclusive`.
    pub(super) replaces: bool,
    /// Whether a type that it names may be a composite one, which is locked as a relation.
    pub(super) composite: bool,
    /// Locks that its text does not show, if it has the key word: `("CASCADE", "objects that depend on it")`. Empty: its text shows all.
    pub(super) unseen: (&'static str, &'static str),
    /// What else is to be known.
    pub note: &'static str,
    /// What does the same and stops others less; empty where nothing does.
    pub advice: &'static str,
    /// One of the form, for the tests that have no server.
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
            from: &[],
            on_table_of_index: None,
            also: &[],
            by_name: false,
            fixed: None,
            since: 14,
            work: Work::Catalog,
            waits_for: None,
            waits_for_snapshots: false,
            alone: false,
            query: "",
            runs: false,
            names_others: false,
            replaces: false,
            composite: false,
            unseen: ("", ""),
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

    /// From which versions on it locks what it names.
    pub(super) const fn from(self, from: &'static [u32]) -> Self {
        Self { from, ..self }
    }

    pub(super) const fn waits_for(self, mode: LockMode) -> Self {
        Self { waits_for: Some(mode), alone: true, ..self }
    }

    pub(super) const fn waits_for_snapshots(self) -> Self {
        Self { waits_for_snapshots: true, ..self }
    }

    pub(super) const fn on_table_of_index(self, mode: LockMode) -> Self {
        Self { on_table_of_index: Some(mode), ..self }
    }

    pub(super) const fn also(self, also: &'static [Also]) -> Self {
        Self { also, ..self }
    }

    pub(super) const fn by_name(self) -> Self {
        Self { by_name: true, ..self }
    }

    pub(super) const fn fixed(self, kind: &'static str, name: &'static str, mode: LockMode) -> Self {
        Self { fixed: Some((kind, name, mode)), ..self }
    }

    pub(super) const fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// With a query after a word, which is run.
    pub(super) const fn runs(self, word: &'static str) -> Self {
        Self { query: word, runs: true, ..self }
    }

    /// With a query after a word, which is kept.
    pub(super) const fn keeps(self, word: &'static str) -> Self {
        Self { query: word, ..self }
    }

    pub(super) const fn others(self) -> Self {
        Self { names_others: true, ..self }
    }

    pub(super) const fn replaces(self) -> Self {
        Self { replaces: true, ..self }
    }

    pub(super) const fn composite(self) -> Self {
        Self { composite: true, ..self }
    }

    pub(super) const fn unseen(self, word: &'static str, what: &'static str) -> Self {
        Self { unseen: (word, what), ..self }
    }

    pub(super) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(super) const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }
}
