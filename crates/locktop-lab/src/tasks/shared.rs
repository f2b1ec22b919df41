//! What goes on at once while the tasks are played, and shares what it knows.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_postgres::Client;

use super::TasksOptions;
use super::ground::Ground;
use super::witness::{Moment, NOW, Stop};
use crate::workers::{Crew, Orders, Plan};
use pg_connect::connect::connect;

/// What the parts of a play share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) ground: Ground,
    pub(super) options: TasksOptions,
    pub(super) plan: Plan,
    crew: Mutex<Crew>,
    record: Mutex<Record>,
}

/// What was done to the workers.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    pub(super) kills: u64,
    pub(super) stopped: u64,
    pub(super) overslept: u64,
    pub(super) cuts: u64,
    pub(super) stops: Vec<Stop>,
}

impl Shared {
    pub(super) fn new(ground: Ground, options: TasksOptions, plan: Plan, orders: Orders) -> Self {
        let crew = Mutex::new(Crew::new(options.program.clone(), orders, options.workers));
        Self { ground, options, plan, crew, record: Mutex::default() }
    }

    pub(super) fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for one part of the play.
    pub(super) async fn connect(&self, part: &str) -> Option<Client> {
        let info = self.ground.info.clone().with_application_name(&format!("locktop demo {part}"));
        Some(connect(&info).await.ok()?.client)
    }
}

/// The server's clock.
pub(super) async fn now(client: &Client) -> Result<Moment, tokio_postgres::Error> {
    client.query_one(NOW, &[]).await?.try_get(0)
}
