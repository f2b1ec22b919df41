use tokio_postgres::Client;

use super::TasksOptions;
use super::tables::TaskTables;
use crate::workers::Plan;
use pg_connect::connect::connect;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) tables: TaskTables,
    pub(super) options: TasksOptions,
    pub(super) plan: Plan,
}

impl Shared {
    pub(super) async fn connect(&self, purpose: &str) -> Option<Client> {
        let info = self.tables.info.clone().with_application_name(&format!("locktop demo {purpose}"));
        Some(connect(&info).await.ok()?.client)
    }
}
