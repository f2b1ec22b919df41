//! Names for advisory lock keys.
//!
//! Sources in order: the user's config, names read from tables, then the keys of well-known software: fixed numbers
//! (`known`), numbers computed from the name of the database, and numbers that encode their name.
//! Software that takes no advisory lock with its own key (Alembic, knex, Liquibase, Quartz, …) has no entry: a guess would
//! only mislead.

mod known;
mod statement;

#[cfg(test)]
mod tests;

pub(crate) use statement::{flyway, golang_migrate, hashtext, hashtextextended};

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::lock::LockTag;
use crate::model::lock_key::LockKey;
use crate::model::snapshot::Names;
use crate::model::statement::redacted::speaks_of_secret;
use crate::model::{QueryText, Text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockName {
    pub name: Text,
    /// Whether the key may belong to other software: shown with a `?`.
    pub uncertain: bool,
    pub origin: Text,
}

impl LockName {
    fn new(name: impl Into<Text>, uncertain: bool, origin: impl Into<Text>) -> Self {
        Self { name: name.into(), uncertain, origin: origin.into() }
    }
}

/// The name, with a `?` if it is uncertain. It is text of the server or the user, not yet made printable.
impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.uncertain { f.write_str("?") } else { Ok(()) }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NameContext<'a> {
    pub database: Option<&'a str>,
    /// `application_name` of the holder.
    pub application: Option<&'a str>,
    pub datid: Option<u32>,
    /// Names of relations, for keys that are computed from an OID.
    pub names: Option<&'a Names>,
}

impl NameContext<'_> {
    fn is_by(&self, words: &[&str]) -> bool {
        let application = self.application.unwrap_or_default().as_bytes();
        words.iter().any(|word| {
            application.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        })
    }
}

/// Names for all databases, and for single ones: every database has its own key spaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) everywhere: FxHashMap<LockKey, LockName>,
    pub(crate) databases: FxHashMap<Text, FxHashMap<LockKey, LockName>>,
}

impl Layer {
    fn extend(&mut self, database: Text, names: impl Iterator<Item = (LockKey, LockName)>) {
        self.databases.entry(database).or_default().extend(names);
    }

    fn get(&self, key: LockKey, database: Option<&str>) -> Option<&LockName> {
        let here = database.and_then(|database| self.databases.get(database));
        here.and_then(|names| names.get(&key)).or_else(|| self.everywhere.get(&key))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Running {
    database: Text,
    names: FxHashMap<LockKey, LockName>,
}

#[derive(Debug, Clone, Default)]
pub struct LockNames {
    pub(crate) configured: Arc<Layer>,
    pub(crate) learned: Arc<Layer>,
    running: Arc<Running>,
    without_statements: bool,
    computed: known::Cache,
}

impl LockNames {
    pub(crate) fn restored(configured: Layer, learned: Layer) -> Self {
        Self { configured: Arc::new(configured), learned: Arc::new(learned), ..Self::default() }
    }

    pub fn new(configured: impl IntoIterator<Item = (LockKey, Text)>) -> Self {
        let origin = Text::from("named in the config");
        let named = |(key, name)| (key, LockName { name, origin: origin.clone(), uncertain: false });
        let everywhere = configured.into_iter().map(named).collect();
        Self { configured: Arc::new(Layer { everywhere, ..Layer::default() }), ..Self::default() }
    }

    /// Names from the user's config for one database only; they precede those of [`Self::new`].
    pub fn with_database(
        mut self,
        database: Text,
        configured: impl IntoIterator<Item = (LockKey, Text)>,
    ) -> Self {
        let origin = Text::from(format!("named in the config for database {database}"));
        let named = |(key, name)| (key, LockName { name, origin: origin.clone(), uncertain: false });
        Arc::make_mut(&mut self.configured).extend(database, configured.into_iter().map(named));
        self
    }

    /// Names that were read in one database and apply only there, each with its origin in one line. `uncertain`: the keys are small numbers which other software
    /// may use as well.
    pub fn with_learned_in(
        mut self,
        database: Text,
        uncertain: bool,
        learned: impl IntoIterator<Item = (LockKey, Text, Text)>,
    ) -> Self {
        let named = |(key, name, origin)| (key, LockName { name, uncertain, origin });
        Arc::make_mut(&mut self.learned).extend(database, learned.into_iter().map(named));
        self
    }

    /// Replaces the names of the locks of running work in a database: key, name and origin. They come after the config. None if
    /// nothing changed.
    pub fn with_running(
        &self,
        database: &str,
        running: impl IntoIterator<Item = (LockKey, Text, Text)>,
    ) -> Option<Self> {
        let of = |(key, name, origin)| (key, LockName { name, origin, uncertain: false });
        let names: FxHashMap<_, _> = running.into_iter().map(of).collect();
        let database = if names.is_empty() { Text::default() } else { database.into() };
        let running = Running { database, names };
        (running != *self.running).then(|| Self { running: Arc::new(running), ..self.clone() })
    }

    /// The name of `key`, if it has one. A miss costs a few look-ups and allocates nothing (except once a database).
    pub fn resolve(&self, key: LockKey, context: NameContext<'_>) -> Option<LockName> {
        let named = self.configured.get(key, context.database);
        let runs =
            || self.running.names.get(&key).filter(|_| context.database == Some(&self.running.database));
        let named = named.or_else(runs).or_else(|| self.learned.get(key, context.database));
        if let Some(named) = named {
            return Some(named.clone());
        }
        known::resolve(key, context)
            .or_else(|| self.computed.resolve(key, context.database?))
            .or_else(|| known::decoded(key, context))
    }

    pub fn in_statement(&self, key: LockKey, statement: &QueryText) -> Option<LockName> {
        let statement = Some(statement.unredacted()).filter(|_| !self.without_statements)?;
        statement::resolve(key, statement).filter(|_| !speaks_of_secret(statement))
    }

    /// The same names, but none from statements: such a name is a literal of the statement.
    #[must_use]
    pub fn without_statements(self) -> Self {
        Self { without_statements: true, ..self }
    }

    /// The name of `key` if it is a hash of one of these texts, as in the published recipes for keys: of a task's name, of
    /// `task:` and its type, or of the key of a rate limit.
    pub fn of_hashed<'a>(
        key: LockKey,
        texts: impl IntoIterator<Item = (&'static str, &'a str)>,
    ) -> Option<LockName> {
        let LockKey::Bigint(number) = key else { return None };
        // This runs whenever a lock is shown, and there may be thousands of texts.
        let short = i32::try_from(number).ok();
        let mut whole = String::new();
        texts.into_iter().find_map(|(before, text)| {
            whole.clear();
            whole.push_str(before);
            whole.push_str(text);
            let origin = if short.is_some_and(|short| statement::hashtext(whole.as_bytes()) == short) {
                "hashtext of a name in the tables"
            } else if statement::md5_keys(&whole).contains(&number) {
                "md5 of a name in the tables"
            } else {
                return None;
            };
            Some(LockName::new(whole.as_str(), false, origin))
        })
    }

    /// The name of an advisory lock, also of one that an extension takes outside the two key spaces. If the context has no
    /// database OID, that of the tag is used.
    pub fn resolve_tag(&self, tag: &LockTag, context: NameContext<'_>) -> Option<LockName> {
        match tag.advisory_key() {
            Some(key) => {
                self.resolve(key, NameContext { datid: context.datid.or(tag.database()), ..context })
            }
            None => known::of_extension(tag),
        }
    }
}
