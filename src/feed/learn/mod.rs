//! Names of advisory lock keys that only the server knows, from queries of the config and tables of well-known software.
//!
//! They are queried soon after the start and then periodically, never on the poll's connection. Names stay until the same
//! source changes them, so that a temporarily locked table removes no names.

mod learner;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::spare::Spare;
use crate::model::Text;
use crate::model::lock_name::LockNames;

pub use learner::Learner;

/// Pause between two rounds.
pub const EVERY: Duration = Duration::from_secs(60);
/// Pause after a round without a connection.
const SOON: Duration = Duration::from_secs(5);

/// A query of the config for names of advisory lock keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub sql: String,
    /// The database to query. `None` is the connected one.
    pub database: Option<String>,
    /// Its position in the config, such as `config.toml:34:1`.
    pub place: String,
}

#[derive(Debug, Clone, Default)]
pub struct Learned {
    pub names: Arc<LockNames>,
    /// Reasons why names could not be learned, one line each.
    pub notes: Arc<[Text]>,
}

#[derive(Debug, Clone)]
pub enum Way {
    /// The spare connection, which is open for actions.
    Spare(Arc<Spare>),
    /// A new connection for each round. Used in read-only mode, which has no spare connection.
    Own,
}

/// Repeats rounds until the receiver is dropped.
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

/// One round on its own connection. Names not read within `timeout` are left out, with a note.
pub async fn once(mut learner: Learner, timeout: Duration) -> Learned {
    if tokio::time::timeout(timeout, learner.round(&Way::Own)).await.is_err() {
        learner.note(format!("lock names: not all were read within {} s", timeout.as_secs_f64()));
    }
    learner.learned()
}
