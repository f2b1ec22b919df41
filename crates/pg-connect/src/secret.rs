/// A password. `Debug` shows `***`, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// `password` as it will be sent.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The plain password, for the code that sends it.
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

/// The source of a password, named if the server rejects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordOrigin {
    /// The connection string or the config file.
    Target,
    /// The environment variable `PGPASSWORD`.
    Environment,
    /// The section of a service file (`service=`).
    Service,
    /// This password file (`passfile`, `PGPASSFILE` or `~/.pgpass`).
    File(std::path::PathBuf),
    /// The prompt of the terminal.
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
