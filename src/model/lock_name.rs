//! Names for advisory lock keys.

use super::Text;
use super::lock_key::LockKey;

/// What a key is called, and how sure that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockName {
    /// The name.
    pub name: Text,
    /// Whether it may be somebody else's key: shown with a `?`.
    pub uncertain: bool,
    /// How it was recognized, one line for the detail view.
    pub origin: Text,
}

/// What corroborates a guess: where the lock is, and who has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Name of the database the lock is in.
    pub database: Option<&'a str>,
    /// `application_name` of the holder.
    pub application: Option<&'a str>,
}

/// Everything that can give a key its name: the user's config first, then the keys of well-known software.
#[derive(Debug, Clone, Default)]
pub struct LockNames {
    configured: rustc_hash::FxHashMap<LockKey, Text>,
}

impl LockNames {
    /// Names from the user's config.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = (LockKey, Text)>) -> Self {
        Self { configured: configured.into_iter().collect() }
    }

    /// The name of `key`, if it has one.
    #[must_use]
    pub fn resolve(&self, key: LockKey, _context: Context<'_>) -> Option<LockName> {
        self.configured.get(&key).map(|name| LockName {
            name: name.clone(),
            uncertain: false,
            origin: "named in the config".into(),
        })
    }
}
