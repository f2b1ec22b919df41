//! Workers of locktop's schema and the types of work that they announced (`announce_worker()`).

pub use super::table_rows::TaskWorker;

impl TaskWorker {
    pub fn types(&self) -> Option<Vec<String>> {
        serde_json::from_str(self.types.as_deref()?).ok()
    }
}
