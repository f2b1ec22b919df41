//! Names of advisory keys that only the server knows: the config's queries, and tables of well-known software.
//!
//! They are asked for soon after the start and then now and then, never on the poll's connection. What was learned
//! stays until the same source says otherwise, so that a table that is locked for a while takes no name away.

mod learner;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::spare::Spare;
use crate::model::Text;
use crate::model::lock_name::LockNames;

pub use learner::Learner;

/// From the end of one round to the start of the next.
pub const EVERY: Duration = Duration::from_secs(60);
/// The same after a round without a connection.
const SOON: Duration = Duration::from_secs(5);

/// A query of the config that brings names of advisory keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The SQL of the query, as the config has it.
    pub sql: String,
    /// The database to ask; none means the one we are connected to.
    pub database: Option<String>,
    /// Where it stands in the config, `config.toml:34:1`.
    pub place: String,
}

/// What is known after a round.
#[derive(Debug, Clone, Default)]
pub struct Learned {
    /// All names: the config's, and the learned ones.
    pub names: Arc<LockNames>,
    /// What could not be learned and why, a line each.
    pub notes: Arc<[Text]>,
}

/// The connection that names are asked on.
#[derive(Debug, Clone)]
pub enum Way {
    /// The second one, which is there for actions.
    Spare(Arc<Spare>),
    /// One that is opened for each round and closed after it: where nobody may act there is no second one.
    Own,
}

/// Learns, until nobody listens any more.
pub async fn keep(mut learner: Learner, way: Way, every: Duration, out: watch::Sender<Learned>) {
    loop {
        let connected = learner.round(&way).await;
        if out.send(learner.learned()).is_err() {
            return;
        }
        let pause = if connected { every } else { every.min(SOON) };
        tokio::select! {
            () = out.closed() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One round on a connection of its own. What is not there within `timeout` is left out, and said.
pub async fn once(mut learner: Learner, timeout: Duration) -> Learned {
    if tokio::time::timeout(timeout, learner.round(&Way::Own)).await.is_err() {
        learner.note(format!("lock names: not all were read within {} s", timeout.as_secs_f64()));
    }
    learner.learned()
}
