//! A connection, and what is known of it.

use std::sync::Arc;

use tokio_postgres::Client;

use crate::model::snapshot::Pooling;
use crate::pg::poll::Session;

/// A connection and the process that serves it.
#[derive(Debug, Clone)]
pub struct Line {
    /// The connection, shared by all who use it.
    pub client: Arc<Client>,
    /// The process; none where it does not say, or is another one each time.
    pub pid: Option<i32>,
    /// Whether a pooler is between locktop and the server, and in which mode.
    pub pooling: Pooling,
}

impl Line {
    /// That of the poll, where whoever has no other may use it.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let server = session.server();
        Some(Self { client: session.client()?, pid: Some(server.own_pid), pooling: server.pooling })
    }
}
