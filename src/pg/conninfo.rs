//! Where the server is and who we are there, by libpq's rules.

use super::error::ConnInfoError;

/// Everything needed to connect.
#[derive(Debug, Clone)]
pub struct ConnInfo {
    pub(super) config: tokio_postgres::Config,
}

impl ConnInfo {
    /// Reads a URI or a key=value string; what it does not say comes from the environment and the defaults.
    ///
    /// # Errors
    /// When the string cannot be understood.
    pub fn parse(text: &str) -> Result<Self, ConnInfoError> {
        let config =
            text.parse().map_err(|error: tokio_postgres::Error| ConnInfoError::Other(error.to_string()))?;
        Ok(Self { config })
    }

    /// The same with another `application_name`.
    #[must_use]
    pub fn with_application_name(mut self, name: &str) -> Self {
        self.config.application_name(name);
        self
    }

    /// The same with another database.
    #[must_use]
    pub fn with_dbname(mut self, name: &str) -> Self {
        self.config.dbname(name);
        self
    }
}
