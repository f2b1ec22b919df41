//! Sessions of workers in `pg_stat_activity`: by what they are known, and what their absence proves.
//!
//! A session is a worker's if its last statement begins with words of the adapter, or its application has a name of it. That one is there proves that a
//! process of the system is connected, not that it works: the session of a stopped process stays. That none is there is known only if all
//! sessions could be seen ([`Presence::sessions`]), and says nothing of workers that connect through a pooler which lends sessions: one of
//! these shows the last statement of its last client.

use std::sync::Arc;

use super::InstallationRows;
use crate::model::backend::{Backend, State};
use crate::model::observed::Observed;
use crate::model::snapshot::{Pooling, Section, Server};
use crate::model::{QueryText, Text};

/// `[presence]`: by what the sessions of its workers are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presence {
    /// How their last statements begin: `LISTEN "jobs:insert"`.
    pub queries: Vec<Text>,
    /// The names of their applications; one that ends in `*` is how they begin.
    pub applications: Vec<Text>,
}

impl Presence {
    /// How many sessions of our database are a worker's; None where none is seen and that proves nothing: not all sessions could be
    /// seen, a statement was left out or not tracked, locktop itself is behind a pooler (so workers may be), or the server is a standby.
    pub fn sessions(&self, backends: &Section<Backend>, server: &Server) -> Option<u64> {
        let Observed::Read(rows) = backends.observed() else { return None };
        if self.queries.is_empty() && self.applications.is_empty() {
            return None;
        }
        let is_other = |backend: &&Backend| {
            backend.datid == Some(server.datid)
                && backend.pid != server.own_pid
                && backend.backend_type.as_deref().is_none_or(|kind| kind == "client backend")
        };
        let all = || rows.iter().filter(is_other);
        let found = all().filter(|backend| self.is_worker(backend)).count() as u64;
        let is_clear = server.pooling == Pooling::None && !server.in_recovery;
        let knows_queries =
            || server.sees_all && !all().any(|backend| backend.state == Some(State::Disabled));
        let is_none = is_clear && (self.queries.is_empty() || knows_queries());
        (found > 0 || is_none).then_some(found)
    }

    fn is_worker(&self, backend: &Backend) -> bool {
        let is_named = |name: &Text| {
            self.applications.iter().any(|word| match word.strip_suffix('*') {
                Some(begins) => name.starts_with(begins),
                None => name == word,
            })
        };
        let listens = |query: &QueryText| {
            let query = query.unredacted().trim_start();
            self.queries.iter().any(|word| query.starts_with(&**word))
        };
        backend.query.as_ref().is_some_and(listens) || backend.application.as_ref().is_some_and(is_named)
    }
}

/// What sessions say of a job whose worker seems to be gone: `sessions` are its worker's, `all` those of all workers of its system.
pub fn connected(sessions: Option<u64>, all: Option<u64>) -> Option<String> {
    let count = |number: u64, whose: &str| match number {
        1 => format!("1 session of {whose} is still connected"),
        many => format!("{many} sessions of {whose} are still connected"),
    };
    match (sessions, all) {
        (Some(0), Some(0)) => Some("no session of a worker is connected".to_owned()),
        (Some(0), _) => Some("no session of its worker is connected".to_owned()),
        (Some(own), _) => Some(format!("{}: it may be stopped", count(own, "its worker"))),
        (None, Some(all)) => Some(count(all, "its system")),
        (None, None) => None,
    }
}

/// What was read of the installations, with the sessions of their workers in the same snapshot.
pub fn counted(
    all: Arc<Vec<InstallationRows>>,
    backends: &Section<Backend>,
    server: &Server,
) -> Arc<Vec<InstallationRows>> {
    if all.iter().all(|rows| rows.installation.adapter.presence == Presence::default()) {
        return all;
    }
    let mut all = Vec::clone(&all);
    for rows in &mut all {
        let adapter = &rows.installation.adapter;
        let found = adapter.presence.sessions(backends, server);
        // Where a worker may have none, none says nothing.
        rows.sessions = found.filter(|found| *found > 0 || adapter.evidence.has_presence);
    }
    Arc::new(all)
}

#[cfg(test)]
mod tests;
