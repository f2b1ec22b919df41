//! The connections for actions: the spare one, or the poll's if that is not available.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

pub use super::spare::Line;
use super::spare::Spare;
use crate::action;
use crate::model::snapshot::Pooling;
use crate::model::view::View;
use crate::pg::poll::take_back;

/// How long to wait for a connection that is being opened.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for an answer to a check. Queries of lock names may be running on the connection, for at most 1.5 s each.
const ANSWER: Duration = Duration::from_secs(4);

/// The connections for actions, in order of preference.
#[derive(Debug, Clone)]
pub struct Lines {
    pub spare: Arc<Spare>,
    /// The poll's connection, used if the spare one is not available. `None` if it must not be used.
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

/// Resets both sessions at exit if a pooler will pass them to other clients.
pub async fn leave(view: &View, poll: Option<Line>, spare: Option<&Spare>) {
    let server = view.snapshot.as_ref().and_then(|shot| shot.server());
    if server.is_none_or(|server| server.pooling != Pooling::Sessions) {
        return;
    }
    let spare = match spare {
        // It may be connecting.
        Some(spare) => spare.client(TIMEOUT).await.ok(),
        None => None,
    };
    for client in poll.map(|line| line.client).into_iter().chain(spare) {
        take_back(&client).await;
    }
}

/// Whether the server answers. A command sent to a silent server could be executed much later, and its result would be
/// unknown until then, so nothing is sent in that case.
async fn answers(client: &Client) -> bool {
    matches!(tokio::time::timeout(ANSWER, client.check_connection()).await, Ok(Ok(())))
}
