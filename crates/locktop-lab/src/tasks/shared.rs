//! What the parts of the tasks know.

use tokio_postgres::Client;

use super::TasksOptions;
use super::ground::Ground;
use crate::workers::Plan;
use pg_connect::connect::connect;

/// What the parts of the tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) ground: Ground,
    pub(super) options: TasksOptions,
    pub(super) plan: Plan,
}

impl Shared {
    /// A connection for one part.
    pub(super) async fn connect(&self, part: &str) -> Option<Client> {
        let info = self.ground.info.clone().with_application_name(&format!("locktop demo {part}"));
        Some(connect(&info).await.ok()?.client)
    }
}
