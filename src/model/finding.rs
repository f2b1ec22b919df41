//! Small checks over a snapshot: what is wrong, how bad, and which key helps.

use super::Text;
use super::backend::BackendId;
use super::lock::LockTag;
use super::lock_name::LockNames;
use super::snapshot::Snapshot;
use super::thresholds::Thresholds;
use super::wait_graph::{Party, WaitGraph};

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Will need somebody.
    Warning,
    /// Needs somebody now.
    Critical,
}

/// The row a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A backend.
    Backend(BackendId),
    /// A prepared transaction or a backend in the wait graph.
    Party(Party),
    /// A lock.
    Lock(LockTag),
    /// The server as a whole.
    Server,
    /// A section of the snapshot, by its name in the JSON.
    Section(&'static str),
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the check, stable, for machines: `root_blocker`, `cycle`, …
    pub check: &'static str,
    /// How bad.
    pub severity: Severity,
    /// One line, for people.
    pub summary: Text,
    /// What it is about.
    pub subject: Subject,
}

/// What the checks look at.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// The one before, if there was one.
    pub previous: Option<&'a Snapshot>,
    /// Its wait graph.
    pub graph: &'a WaitGraph,
    /// Names for advisory keys.
    pub lock_names: &'a LockNames,
    /// The limits.
    pub thresholds: &'a Thresholds,
}

/// All findings, worst first.
#[must_use]
pub fn find(_scene: Scene<'_>) -> Vec<Finding> {
    Vec::new()
}
