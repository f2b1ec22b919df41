//! The language of the names that a demo gives to tasks, queue items and locks.

use serde::{Deserialize, Serialize};

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

impl Language {
    /// The name in this language, given the English and the Chinese one.
    #[must_use]
    pub fn of<T>(self, (english, chinese): (T, T)) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}
