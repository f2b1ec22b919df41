//! The connections that are there for whoever acts: the spare one, and where that could not be had, the poll's.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

use super::spare::Spare;
use crate::action;
use crate::pg::poll::Session;

/// How long to wait for a connection that is just being opened.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A connection and the process that serves it.
#[derive(Debug, Clone)]
pub struct Line {
    /// The connection.
    pub client: Arc<Client>,
    /// The process. Through a pooler in transaction mode it is another one each time.
    pub pid: Option<i32>,
}

impl Line {
    pub(super) fn of(session: &Session) -> Self {
        Self { client: session.client(), pid: Some(session.server().own_pid) }
    }
}

/// Both connections.
#[derive(Debug, Clone)]
pub struct Lines {
    /// The one that is there for this.
    pub spare: Arc<Spare>,
    /// The poll's.
    pub poll: watch::Receiver<Option<Line>>,
}

impl action::Lines for Lines {
    async fn client(&self) -> Result<Arc<Client>, String> {
        let why = match self.spare.ready(TIMEOUT).await {
            Ok(client) => return Ok(client),
            Err(why) => why,
        };
        let poll = self.poll.borrow().as_ref().map(|line| Arc::clone(&line.client));
        poll.filter(|client| !client.is_closed()).ok_or_else(|| format!("there is no connection: {why}"))
    }

    fn pids(&self) -> Vec<i32> {
        let poll = self.poll.borrow().as_ref().and_then(|line| line.pid);
        poll.into_iter().chain(self.spare.pid()).collect()
    }
}
