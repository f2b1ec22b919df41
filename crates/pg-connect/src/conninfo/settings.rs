use std::sync::Arc;

use super::super::error::ConnInfoError;
use locktop_base::text;

#[derive(Clone)]
pub(super) struct Given {
    pub(super) value: String,
    pub(super) origin: Origin,
}

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
    /// The value of `key`, if it is not empty: an empty value requests the default.
    pub(super) fn get(&self, key: &str) -> Option<&Given> {
        self.said(key).filter(|given| !given.value.is_empty())
    }

    /// The same, even if empty: some settings have no default for an empty value.
    pub(super) fn said(&self, key: &str) -> Option<&Given> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, given)| given)
    }

    pub(super) fn set(&mut self, key: &'static str, value: String, origin: Origin) {
        self.0.retain(|(name, _)| *name != key);
        self.0.push((key, Given { value, origin }));
    }

    /// Adds it, unless it is already set.
    pub(super) fn add(&mut self, key: &'static str, value: String, origin: Origin) {
        if !self.0.iter().any(|(name, _)| *name == key) {
            self.0.push((key, Given { value, origin }));
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &Given)> {
        self.0.iter().map(|(key, given)| (*key, given))
    }

    /// Adds the settings of `weaker` that are not set yet.
    pub(super) fn fill(&mut self, weaker: Self) {
        for (key, given) in weaker.0 {
            self.add(key, given.value, given.origin);
        }
    }
}

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

/// The value of `key` among these; a missing one is the default.
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

pub(super) fn unsupported(setting: String, origin: &Origin) -> ConnInfoError {
    ConnInfoError::Unsupported { setting, origin: origin.to_string() }
}
