//! Names for advisory lock keys.
//!
//! First the user's config, then names that were read from tables, then the keys of well-known software: fixed
//! numbers (`known`), numbers computed from the name of the database (`database`), and numbers that can be
//! read backwards (`decoded`). Software that takes no advisory lock with a key of its own (Alembic, knex,
//! Liquibase, Quartz, …) has no entry: a guess would only mislead.

mod database;
mod decoded;
mod extension;
mod hash;
mod known;
mod statement;

#[cfg(test)]
mod tests;

pub(crate) use hash::{flyway, golang_migrate, hashtext, hashtextextended};

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::lock::LockTag;
use super::lock_key::LockKey;
use super::snapshot::Names;
use super::statement::secrets::speaks_of_secret;
use super::{QueryText, Text};

/// What a key is called, and how sure that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockName {
    /// What the key is called, as text of the server or of the config: `Prisma Migrate`.
    pub name: Text,
    /// Whether it may be somebody else's key: shown with a `?`.
    pub uncertain: bool,
    /// How it was recognized, one line for the detail view.
    pub origin: Text,
}

impl LockName {
    fn new(name: impl Into<Text>, uncertain: bool, origin: impl Into<Text>) -> Self {
        Self { name: name.into(), uncertain, origin: origin.into() }
    }
}

/// The name, with a `?` where it is uncertain. It is text of the server or the user: one line it is not yet.
impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.uncertain { f.write_str("?") } else { Ok(()) }
    }
}

/// What corroborates a guess: where the lock is, and who has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Name of the database the lock is in.
    pub database: Option<&'a str>,
    /// `application_name` of the holder.
    pub application: Option<&'a str>,
    /// OID of the database the lock is in.
    pub datid: Option<u32>,
    /// Names of relations, for keys that are made from the OID of one.
    pub names: Option<&'a Names>,
}

impl Context<'_> {
    /// Whether the holder's application holds one of `words`, in any case.
    fn is_by(&self, words: &[&str]) -> bool {
        let application = self.application.unwrap_or_default().as_bytes();
        words.iter().any(|word| {
            application.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        })
    }
}

/// A name and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: Text,
    pub(crate) origin: Text,
    pub(crate) uncertain: bool,
}

/// Names for all databases, and for some of them: every database has key spaces of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) everywhere: FxHashMap<LockKey, Named>,
    pub(crate) databases: FxHashMap<Text, FxHashMap<LockKey, Named>>,
}

impl Layer {
    fn get(&self, key: LockKey, database: Option<&str>) -> Option<&Named> {
        let here = database.and_then(|database| self.databases.get(database));
        here.and_then(|names| names.get(&key)).or_else(|| self.everywhere.get(&key))
    }
}

/// The locks of what runs in a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Running {
    database: Text,
    names: FxHashMap<LockKey, Named>,
}

/// Everything that can give a key its name: the user's config first, then the keys of well-known software.
#[derive(Debug, Clone, Default)]
pub struct LockNames {
    pub(crate) configured: Arc<Layer>,
    pub(crate) learned: Arc<Layer>,
    /// What runs now in one database.
    running: Arc<Running>,
    /// No name is taken from a statement.
    without_statements: bool,
    computed: database::Cache,
}

impl LockNames {
    /// Names that were kept: the config's, and those that were learned.
    pub(crate) fn restored(configured: Layer, learned: Layer) -> Self {
        Self { configured: Arc::new(configured), learned: Arc::new(learned), ..Self::default() }
    }

    /// Names from the user's config.
    pub fn new(configured: impl IntoIterator<Item = (LockKey, Text)>) -> Self {
        let origin = Text::from("named in the config");
        let named = |(key, name)| (key, Named { name, origin: origin.clone(), uncertain: false });
        let everywhere = configured.into_iter().map(named).collect();
        Self { configured: Arc::new(Layer { everywhere, ..Layer::default() }), ..Self::default() }
    }

    /// Names from the user's config that count in one database only; they come before those of [`Self::new`].
    pub fn with_database(
        mut self,
        database: Text,
        configured: impl IntoIterator<Item = (LockKey, Text)>,
    ) -> Self {
        let origin = Text::from(format!("named in the config for database {database}"));
        let named = |(key, name)| (key, Named { name, origin: origin.clone(), uncertain: false });
        Arc::make_mut(&mut self.configured)
            .databases
            .entry(database)
            .or_default()
            .extend(configured.into_iter().map(named));
        self
    }

    /// Names that were computed or looked up elsewhere, each with its origin in one line. They count in all
    /// databases, after the config and before well-known software.
    pub fn with_learned(mut self, learned: impl IntoIterator<Item = (LockKey, Text, Text)>) -> Self {
        let named = |(key, name, origin)| (key, Named { name, origin, uncertain: false });
        Arc::make_mut(&mut self.learned).everywhere.extend(learned.into_iter().map(named));
        self
    }

    /// Names that were read in one database and count only there. `uncertain` says that the keys are small numbers
    /// which somebody else may use as well.
    pub fn with_learned_in(
        mut self,
        database: Text,
        uncertain: bool,
        learned: impl IntoIterator<Item = (LockKey, Text, Text)>,
    ) -> Self {
        let named = |(key, name, origin)| (key, Named { name, origin, uncertain });
        Arc::make_mut(&mut self.learned)
            .databases
            .entry(database)
            .or_default()
            .extend(learned.into_iter().map(named));
        self
    }

    /// Names of the locks of what runs now in a database, in place of those before: key, name and origin. They come after the config. None
    /// where they are those that there are.
    pub fn with_running(
        &self,
        database: &str,
        running: impl IntoIterator<Item = (LockKey, Text, Text)>,
    ) -> Option<Self> {
        let of = |(key, name, origin)| (key, Named { name, origin, uncertain: false });
        let names: FxHashMap<_, _> = running.into_iter().map(of).collect();
        let database = if names.is_empty() { Text::default() } else { database.into() };
        let running = Running { database, names };
        (running != *self.running).then(|| Self { running: Arc::new(running), ..self.clone() })
    }

    /// The name of `key`, if it has one. A miss costs a few look-ups and allocates nothing (except once a database).
    pub fn resolve(&self, key: LockKey, context: Context<'_>) -> Option<LockName> {
        let named = self.configured.get(key, context.database);
        let runs =
            || self.running.names.get(&key).filter(|_| context.database == Some(&self.running.database));
        let named = named.or_else(runs).or_else(|| self.learned.get(key, context.database));
        if let Some(named) = named {
            return Some(LockName::new(named.name.clone(), named.uncertain, named.origin.clone()));
        }
        known::resolve(key, context)
            .or_else(|| self.computed.resolve(key, context.database?))
            .or_else(|| decoded::resolve(key, context))
    }

    /// The literal that a statement makes this key of, where it does.
    pub fn in_statement(&self, key: LockKey, statement: &QueryText) -> Option<LockName> {
        let statement = Some(statement.unredacted()).filter(|_| !self.without_statements)?;
        statement::resolve(key, statement).filter(|_| !speaks_of_secret(statement))
    }

    /// The same names, but none that a statement tells: such a name is a literal of it.
    #[must_use]
    pub fn without_statements(self) -> Self {
        Self { without_statements: true, ..self }
    }

    /// The name of `key` where it is a hash of one of these texts, as the published recipes make their keys: of a task's name, of `task:` and
    /// its type, or of the key of a rate limit.
    pub fn of_hashed<'a>(
        key: LockKey,
        texts: impl IntoIterator<Item = (&'static str, &'a str)>,
    ) -> Option<LockName> {
        let LockKey::Bigint(number) = key else { return None };
        // A lock is named whenever it is shown: there may be thousands of texts.
        let short = i32::try_from(number).ok();
        let mut whole = String::new();
        texts.into_iter().find_map(|(before, text)| {
            whole.clear();
            whole.push_str(before);
            whole.push_str(text);
            let origin = if short.is_some_and(|short| hash::hashtext(whole.as_bytes()) == short) {
                "hashtext of a name in the tables"
            } else if hash::md5_keys(&whole).contains(&number) {
                "md5 of a name in the tables"
            } else {
                return None;
            };
            Some(LockName::new(whole.as_str(), false, origin))
        })
    }

    /// The name of an advisory lock, also of one that an extension takes outside the two key spaces. Where the
    /// context has no database OID, that of the tag counts.
    pub fn resolve_tag(&self, tag: &LockTag, context: Context<'_>) -> Option<LockName> {
        match tag.advisory_key() {
            Some(key) => self.resolve(key, Context { datid: context.datid.or(tag.database()), ..context }),
            None => extension::resolve(tag),
        }
    }
}
