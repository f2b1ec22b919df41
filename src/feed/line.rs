use std::sync::Arc;

use tokio_postgres::Client;

use crate::model::snapshot::Pooling;
use crate::pg::poll::Session;

#[derive(Debug, Clone)]
pub struct Line {
    pub client: Arc<Client>,
    /// The process id. `None` if unknown, or if it changes each time.
    pub pid: Option<i32>,
    /// The mode of the pooler between locktop and the server, if any.
    pub pooling: Pooling,
}

impl Line {
    /// The poll's connection, if others may use it.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let server = session.server();
        Some(Self { client: session.client()?, pid: Some(server.own_pid), pooling: server.pooling })
    }
}
