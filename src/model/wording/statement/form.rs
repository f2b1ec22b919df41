use crate::model::lock::LockMode;

words! {
    /// What the statement does with the rows of its table while it holds the lock, the shortest first.
    pub enum StatementWork {
        /// Nothing whose duration depends on the size of the table.
        Catalog,
        /// Some or all rows, as the statement says.
        Rows,
        /// Empties the table, by creating new files.
        Empties,
        Reads,
        /// Reads the whole table and writes an index.
        BuildsIndex,
        Copies,
        /// Rewrites the table, unless something outside the statement makes that unnecessary.
        MayRewrite,
        Rewrites,
    }
}

impl StatementWork {
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

/// Relations that a statement does not name and that the server finds through a named one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Partitions and children of a table, and indexes of partitions, at any depth.
    Below,
    /// The same, only for a partitioned table.
    Partitions,
    /// The tables that a view reads, at any depth.
    Base,
    /// The same for a materialized view, whose tables are read at REFRESH.
    Source,
    Parent,
    /// Tables that its foreign keys reference.
    Referenced,
    /// Tables whose foreign keys reference it.
    Referencing,
    /// The same, if the foreign key has an action: CASCADE, SET NULL, SET DEFAULT.
    Cascading,
    Sequences,
    /// Views on it, at any depth.
    Views,
    /// Tables with a column of the type.
    Columns,
    /// The default partition.
    Default,
    Indexes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Also {
    pub role: Role,
    /// `None`: the mode on the named relation.
    pub mode: Option<LockMode>,
    /// Only if the statement has this key word; empty: always.
    pub word: &'static str,
    /// The first version that locks it.
    pub from: u32,
}

impl Also {
    pub(super) const fn same(role: Role) -> Self {
        Self { role, mode: None, word: "", from: 14 }
    }

    pub(super) const fn of(role: Role, mode: LockMode) -> Self {
        Self { role, mode: Some(mode), word: "", from: 14 }
    }

    pub(super) const fn with(self, word: &'static str) -> Self {
        Self { word, ..self }
    }

    pub(super) const fn from(self, from: u32) -> Self {
        Self { from, ..self }
    }
}

/// A form of statement. `pattern` is in the language of the module `pattern`; for ALTER TABLE it is the pattern of an
/// action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own, most forms have none")]
pub struct Form {
    /// `ALTER TABLE … SET NOT NULL`, for example.
    pub name: &'static str,
    pub(super) pattern: &'static str,
    /// Modes on the relations and objects of the pattern, in order; the last one applies to all that follow.
    pub modes: &'static [LockMode],
    /// The first version that takes each of these modes, in the same order; empty: all versions.
    pub(super) from: &'static [u32],
    /// The mode on the table of a named index.
    pub on_table_of_index: Option<LockMode>,
    pub also: &'static [Also],
    /// Whether only foreign keys named in the statement count, by constraint or column.
    pub(super) by_name: bool,
    /// A lock that is always taken: key words of the kind, or an empty string for a catalog; name; mode.
    pub(super) fixed: Option<(&'static str, &'static str, LockMode)>,
    pub since: u32,
    pub work: StatementWork,
    /// It also waits for all transactions that hold a lock on the table in a mode conflicting with this one, whatever mode it
    /// takes itself.
    pub waits_for: Option<LockMode>,
    /// Whether it waits for all transactions of the database with an older snapshot.
    pub waits_for_snapshots: bool,
    pub alone: bool,
    /// The word before a query that is part of the statement; empty without one.
    pub(super) query: &'static str,
    /// Whether the query is run: a query that is only planned locks no tables below a view.
    pub(super) runs: bool,
    /// Whether REFERENCES and LIKE in it name other tables.
    pub(super) names_others: bool,
    /// Whether the created object may already exist: it is then locked in `AccessExclusive`.
    pub(super) replaces: bool,
    /// Whether a named type may be a composite type, which is locked as a relation.
    pub(super) composite: bool,
    /// Locks that the text does not show, if the statement has the key word: `("CASCADE", "objects that depend on it")`. Empty:
    /// the text shows all locks.
    pub(super) unseen: (&'static str, &'static str),
    pub note: &'static str,
    /// An alternative with the same result that blocks less; empty if there is none.
    pub advice: &'static str,
    pub example: &'static str,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) { $($field:ident $(: $value:expr)?),* })*) => {
        $($(#[$doc])* pub(super) const fn $name(self, $($argument: $type),*) -> Self {
            Self { $($field $(: $value)?,)* ..self }
        })*
    };
}

pub(super) const fn form(
    name: &'static str,
    pattern: &'static str,
    modes: &'static [LockMode],
    example: &'static str,
) -> Form {
    Form {
        name,
        pattern,
        modes,
        from: &[],
        on_table_of_index: None,
        also: &[],
        by_name: false,
        fixed: None,
        since: 14,
        work: StatementWork::Catalog,
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

impl Form {
    setters! {
        work(work: StatementWork) { work }
        since(since: u32) { since }
        from(from: &'static [u32]) { from }
        waits_for(mode: LockMode) { waits_for: Some(mode), alone: true }
        waits_for_snapshots() { waits_for_snapshots: true }
        on_table_of_index(mode: LockMode) { on_table_of_index: Some(mode) }
        also(also: &'static [Also]) { also }
        by_name() { by_name: true }
        fixed(kind: &'static str, name: &'static str, mode: LockMode) { fixed: Some((kind, name, mode)) }
        alone() { alone: true }
        /// With a query after `word`, which is run.
        runs(word: &'static str) { query: word, runs: true }
        /// With a query after `word`, which is stored.
        keeps(word: &'static str) { query: word }
        others() { names_others: true }
        replaces() { replaces: true }
        composite() { composite: true }
        unseen(word: &'static str, what: &'static str) { unseen: (word, what) }
        note(note: &'static str) { note }
        advice(advice: &'static str) { advice }
    }
}
