//! What all contests are given.

use std::path::PathBuf;

use crate::OpenQuestion;
use crate::workers::WorkerConfig;
use locktop_tasks::schema::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// Where contests run, and how.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub(crate) info: ConnInfo,
    /// Locktop's tables and functions, which are the demo's own here.
    pub(crate) schema: SchemaName,
    /// The program of the processes.
    pub(crate) program: PathBuf,
    pub(crate) config: WorkerConfig,
    pub(crate) seed: u64,
    /// There is no dashboard, and the numbers are asked for at the end.
    pub(crate) headless: bool,
    /// While it is open no fault is injected.
    pub(crate) question: OpenQuestion,
}

impl Environment {
    /// How many sessions there are: fewer with a dashboard.
    pub(super) fn sessions(&self, headless: usize, shown: usize) -> usize {
        if self.headless { headless } else { shown }
    }
}
