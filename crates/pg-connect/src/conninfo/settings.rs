//! Settings: what was said of each key, and by whom.

use std::sync::Arc;

use super::super::error::ConnInfoError;
use locktop_base::text;

/// A value and who gave it.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// Who gave a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Target,
    Flag(&'static str),
    Variable(&'static str),
    /// A section of a service file, with the file.
    Service(Arc<str>),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Target => f.write_str("the connection string"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => f.write_str(name),
            Self::Service(which) => f.write_str(which),
        }
    }
}

/// The settings of one source or, merged, of all.
#[derive(Default)]
pub(super) struct Settings(Vec<(&'static str, Given)>);

impl Settings {
    /// What was said of `key`, if it is not empty: an empty value asks for the default.
    pub(super) fn get(&self, key: &str) -> Option<&Given> {
        self.said(key).filter(|given| !given.value.is_empty())
    }

    /// The same, empty or not: some settings have no default that an empty value could ask for.
    pub(super) fn said(&self, key: &str) -> Option<&Given> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, given)| given)
    }

    /// Takes it in place of what was set.
    pub(super) fn set(&mut self, key: &'static str, value: String, origin: Origin) {
        self.0.retain(|(name, _)| *name != key);
        self.0.push((key, Given { value, origin }));
    }

    /// Takes what is not set yet.
    pub(super) fn add(&mut self, key: &'static str, value: String, origin: Origin) {
        if !self.0.iter().any(|(name, _)| *name == key) {
            self.0.push((key, Given { value, origin }));
        }
    }

    /// All that was said.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &Given)> {
        self.0.iter().map(|(key, given)| (*key, given))
    }

    /// Takes from `weaker` what is not set yet.
    pub(super) fn fill(&mut self, weaker: Self) {
        for (key, given) in weaker.0 {
            self.add(key, given.value, given.origin);
        }
    }
}

/// The error of a value that is none for `key`.
pub(super) fn invalid(
    settings: &Settings,
    key: &'static str,
    value: &str,
    expected: &'static str,
) -> ConnInfoError {
    let origin = settings.said(key).map_or(Origin::Target, |given| given.origin.clone());
    ConnInfoError::Invalid {
        key,
        value: text::one_line(value).into_owned(),
        origin: origin.to_string(),
        expected,
    }
}

/// The value of `key` among these; what is missing is the default.
pub(super) fn choice<T: Copy>(
    settings: &Settings,
    key: &'static str,
    expected: &'static str,
    default: T,
    choices: &[(&str, T)],
) -> Result<T, ConnInfoError> {
    let Some(Given { value, .. }) = settings.said(key) else { return Ok(default) };
    choices
        .iter()
        .find(|(name, _)| name == value)
        .map(|(_, choice)| *choice)
        .ok_or_else(|| invalid(settings, key, value, expected))
}

/// The error of what is asked for and is not there.
pub(super) fn unsupported(setting: String, origin: &Origin) -> ConnInfoError {
    ConnInfoError::Unsupported { setting, origin: origin.to_string() }
}
