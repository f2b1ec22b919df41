//! The connections that are there for whoever acts: the spare one, and where that could not be had, the poll's.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

pub use super::line::Line;
use super::spare::Spare;
use crate::action;
use crate::model::snapshot::Pooling;
use crate::model::view::View;
use crate::pg::poll::take_back;

/// How long to wait for a connection that is just being opened.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for a sign of life of one. Names of locks may be read on it just then, in statements of 1.5 s at most.
const ANSWER: Duration = Duration::from_secs(4);

/// The connections that actions may use, the one after the other.
#[derive(Debug, Clone)]
pub struct Lines {
    /// The connection that is kept open for actions.
    pub spare: Arc<Spare>,
    /// The connection of the poll, for when the other is not to be had; none where it may not be used.
    pub poll: watch::Receiver<Option<Line>>,
}

impl action::Lines for Lines {
    async fn client(&self) -> Result<Arc<Client>, String> {
        let why = match self.spare.ready(TIMEOUT).await {
            Ok(client) if answers(&client).await => return Ok(client),
            Ok(_) => "the server does not answer".to_owned(),
            Err(why) => why,
        };
        let poll = self.poll.borrow().as_ref().map(|line| Arc::clone(&line.client));
        match poll {
            Some(client) if answers(&client).await => Ok(client),
            _ => Err(format!("no connection: {why}")),
        }
    }

    fn pids(&self) -> Vec<i32> {
        let poll = self.poll.borrow().as_ref().and_then(|line| line.pid);
        poll.into_iter().chain(self.spare.pid()).collect()
    }
}

/// Leaves both connections as they were found where the next client of a pooler gets their sessions. To be called at the end.
pub async fn leave(view: &View, poll: Option<Line>, spare: Option<&Spare>) {
    let server = view.snapshot.as_ref().and_then(|shot| shot.server());
    if server.is_none_or(|server| server.pooling != Pooling::Sessions) {
        return;
    }
    let spare = match spare {
        // It may be on its way.
        Some(spare) => spare.client(TIMEOUT).await.ok(),
        None => None,
    };
    for client in poll.map(|line| line.client).into_iter().chain(spare) {
        take_back(&client).await;
    }
}

/// Whether anybody is at the other end. What is sent into silence may arrive when nobody wants it any more, and until then it would be in
/// doubt what came of it: so nothing is sent then.
async fn answers(client: &Client) -> bool {
    matches!(tokio::time::timeout(ANSWER, client.check_connection()).await, Ok(Ok(())))
}
