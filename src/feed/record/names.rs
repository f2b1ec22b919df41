//! Replaces names by hashes: the recording shows which sessions waited for which, but no names.
//!
//! Hashes are salted and the salt is never stored, so names cannot be found by trying them. Rows that consist of names
//! (tasks, jobs, leases, queues) are left out.

use std::fmt::Write;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::model::backend::Backend;
use crate::model::disclosure::{Channel, Mode, shown};
use crate::model::event::Events;
use crate::model::finding::Deadlocks;
use crate::model::fingerprint::is_hash;
use crate::model::lock_name::LockNames;
use crate::model::lock_waits::WaitCounter;
use crate::model::past::{CarriedState, KeptObservation};
use crate::model::snapshot::{Names, Section, Snapshot};
use crate::model::statement;
use crate::model::{QueryText, Text};

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 16]);

impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt")
    }
}

/// Replaces the name of the server in the header.
pub const HIDDEN: &str = "names-left-out";

/// How much of a statement is parsed for its form, in bytes.
const STATEMENT: usize = 4096;

const KINDS: [&str; 18] = [
    "client backend",
    "autovacuum launcher",
    "autovacuum worker",
    "parallel worker",
    "walsender",
    "walreceiver",
    "walwriter",
    "walsummarizer",
    "checkpointer",
    "background writer",
    "archiver",
    "startup",
    "logger",
    "io worker",
    "slotsync worker",
    "logical replication launcher",
    "logical replication worker",
    "logical replication parallel worker",
];

impl Salt {
    pub fn random() -> std::io::Result<Self> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(std::io::Error::other)?;
        Ok(Self(salt))
    }

    /// For example `role-0f3a91c27e`. A hash of this kind is returned unchanged.
    pub fn hash(self, kind: &str, name: &str) -> Text {
        let is_hash = |rest: &str| rest.len() == 10 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if name.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_hash) {
            return name.into();
        }
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(kind.as_bytes());
        hash.update([0]);
        hash.update(name.as_bytes());
        let mut text = format!("{kind}-");
        for byte in hash.finalize().iter().take(5) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.into()
    }

    fn put(self, kind: &str, name: &mut Option<Text>) {
        if let Some(name) = name.as_mut().filter(|name| !name.is_empty()) {
            *name = self.hash(kind, name);
        }
    }

    pub(super) fn apply(self, snapshot: &mut Snapshot) {
        for server in Arc::make_mut(snapshot.server.rows_mut()) {
            server.host = self.hash("host", &server.host);
            server.database = self.hash("db", &server.database);
            server.user = self.hash("role", &server.user);
        }
        for backend in Arc::make_mut(snapshot.backends.rows_mut()) {
            self.backend(backend);
        }
        for prepared in Arc::make_mut(snapshot.prepared.rows_mut()) {
            prepared.gid = self.hash("gid", &prepared.gid);
            self.put("role", &mut prepared.owner);
            self.put("db", &mut prepared.database);
        }
        let Names { relations, databases, objects } = &*snapshot.names;
        snapshot.names = Arc::new(Names {
            relations: relations.iter().map(|(oid, name)| (*oid, self.hash("rel", name))).collect(),
            databases: databases.iter().map(|(oid, name)| (*oid, self.hash("db", name))).collect(),
            objects: objects.iter().map(|(oid, name)| (*oid, self.hash("obj", name))).collect(),
        });
        silence(&mut snapshot.server);
        silence(&mut snapshot.backends);
        silence(&mut snapshot.locks);
        silence(&mut snapshot.prepared);
        snapshot.task_sets = Arc::default();
        snapshot.sources = Arc::default();
        snapshot.adapters = Arc::default();
    }

    fn backend(self, backend: &mut Backend) {
        self.put("db", &mut backend.database);
        self.put("role", &mut backend.user);
        self.put("app", &mut backend.application);
        if backend.client.as_deref() != Some("[local]") {
            self.put("client", &mut backend.client);
        }
        let kind = backend.backend_type.as_deref();
        let is_vacuum = kind == Some("autovacuum worker");
        if kind.is_some_and(|kind| !KINDS.contains(&kind)) {
            backend.backend_type = Some("background worker".into());
        }
        if backend.wait_event_type.as_deref() == Some("Extension") {
            backend.wait_event = Some("Extension".into());
        }
        let is_urgent = backend.prevents_wraparound();
        if let Some(query) = backend.query.as_mut().filter(|query| query.bytes() > 0) {
            *query = if is_vacuum { vacuum(is_urgent) } else { self.statement(query) }.into();
        }
    }

    /// The form of a statement, which contains no names, and its hash without literals.
    fn statement(self, query: &QueryText) -> Text {
        let text = query.unredacted();
        if is_hash(text) {
            return Text::clone(text);
        }
        let hash = self.hash("query", &shown(Channel::Recording(Mode::Names), query));
        let form = statement::first(text, STATEMENT)
            .and_then(|statement| statement.forms.first().map(|form| form.name));
        form.map_or_else(|| Text::clone(&hash), |form| format!("{form} {hash}").into())
    }

    /// Removes the names from a stored snapshot, including all text about it.
    pub(super) fn apply_to_recorded(self, kept: &mut KeptObservation) {
        self.apply(&mut kept.snapshot);
        if let Some(graph) = &mut kept.past.graph_from {
            for backend in Arc::make_mut(&mut graph.backends) {
                self.backend(backend);
            }
        }
        let CarriedState { deadlocks, waits, .. } = &mut kept.past;
        *deadlocks = Deadlocks::default();
        *waits = WaitCounter::default();
        kept.rights = None;
        kept.lock_names = Arc::new(LockNames::default());
        kept.notes = Arc::default();
        kept.events = Arc::new(Events::default());
        // Costs are computed again from what is left.
        kept.blame = None;
        // Entries for expected blockers contain names.
        kept.expected = Some(Arc::default());
    }
}

/// Error messages of the server can contain names.
fn silence<T>(section: &mut Section<T>) {
    if let Some(error) = &mut section.error {
        *error = "could not be read".into();
    }
}

fn vacuum(is_urgent: bool) -> Text {
    if is_urgent { "autovacuum: (to prevent wraparound)".into() } else { "autovacuum".into() }
}
