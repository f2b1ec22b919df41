//! Sessions of workers in `pg_stat_activity`: how they are identified, and what their absence proves.
//!
//! A session is a worker's if its last statement begins with text of the adapter, or its application has a listed name. A
//! session proves that a process of the system is connected, not that it works: a stopped process keeps its session. The
//! absence of sessions is known only if all sessions were visible ([`Presence::sessions`]), and shows nothing about workers
//! behind a pooler that shares sessions: such a session shows the last statement of its last client.

use std::sync::Arc;

use super::InstallationRows;
use crate::model::backend::{Backend, State};
use crate::model::section::Observed;
use crate::model::snapshot::{Pooling, Section, Server};
use crate::model::{QueryText, Text};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presence {
    /// Prefixes of their last statements: `LISTEN "jobs:insert"`.
    pub queries: Vec<Text>,
    /// Their application names; a name that ends in `*` is a prefix.
    pub applications: Vec<Text>,
}

impl Presence {
    /// The number of worker sessions in the connected database. None if there is none and that proves nothing: not all sessions
    /// were visible, a statement was omitted or not tracked, locktop itself is behind a pooler (so workers may be), or the
    /// server is a standby.
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

/// A description of the sessions for a job whose worker seems to be lost: `sessions` are its worker's, `all` those of all
/// workers of its system.
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
        // If workers need not have a session, a count of 0 means nothing.
        rows.sessions = found.filter(|found| *found > 0 || adapter.evidence.has_presence);
    }
    Arc::new(all)
}

#[cfg(test)]
mod tests;
