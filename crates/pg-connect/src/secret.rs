//! A password, which nothing prints.

/// A password. `Debug` shows `***`, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a password.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The password itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Where a password came from: named when the server rejects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordOrigin {
    /// The connection string or the config file.
    Target,
    /// `PGPASSWORD`.
    Environment,
    /// A service file.
    Service,
    /// A password file.
    File(std::path::PathBuf),
    /// Somebody typed it.
    Prompt,
}

impl std::fmt::Display for PasswordOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Target => f.write_str("the connection string"),
            Self::Environment => f.write_str("PGPASSWORD"),
            Self::Service => f.write_str("the service file"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Prompt => f.write_str("the prompt"),
        }
    }
}
