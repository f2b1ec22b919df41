use std::path::PathBuf;

use crate::OpenQuestion;
use crate::workers::WorkerConfig;
use locktop_tasks::schema::SchemaName;
use pg_connect::conninfo::ConnInfo;

#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub(crate) info: ConnInfo,
    /// The schema with locktop's tables and functions, created by the demo.
    pub(crate) schema: SchemaName,
    pub(crate) program: PathBuf,
    pub(crate) config: WorkerConfig,
    pub(crate) seed: u64,
    pub(crate) headless: bool,
    /// While a question is open, no fault is injected.
    pub(crate) question: OpenQuestion,
}

impl Environment {
    pub(super) fn sessions(&self, headless: usize, shown: usize) -> usize {
        if self.headless { headless } else { shown }
    }
}
