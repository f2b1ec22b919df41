//! The language of the names that a demo gives to tasks, queue items and locks.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    #[must_use]
    pub fn of<T>(self, (english, chinese): (T, T)) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}
