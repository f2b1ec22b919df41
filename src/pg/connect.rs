//! Opening a connection.

use super::conninfo::ConnInfo;
use super::error::ConnectError;

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    /// For sending statements.
    pub client: tokio_postgres::Client,
    /// Ends, with the reason, when the connection does.
    pub driver: tokio::task::JoinHandle<Result<(), tokio_postgres::Error>>,
}

/// Connects.
///
/// # Errors
/// When the server cannot be reached, does not answer in time, or refuses.
pub async fn connect(info: &ConnInfo) -> Result<Connection, ConnectError> {
    let (client, connection) = info
        .config
        .connect(tokio_postgres::NoTls)
        .await
        .map_err(|error| ConnectError::Other(error.to_string()))?;
    Ok(Connection { client, driver: tokio::spawn(connection) })
}
