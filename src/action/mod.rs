//! Actions that locktop executes on a server when requested; all other parts only read.
//!
//! The statement that acts compares the target with what was seen, so that no similar target is affected. The request
//! and its result are recorded in a file of the user ([`audit`]) and in the schema's `locktop_audit`.

pub mod audit;
pub mod executor;
mod published;
pub mod recover;
mod redis_lease;
mod session;
mod table;

use std::future::Future;
use std::sync::Arc;

pub use locktop_tasks::actor::Actor;
use locktop_tasks::{actor, literal, message};
use tokio_postgres::Client;

use crate::model::plan::{ActionCommand, Outcome, Target, TargetResult};

/// Connections that are opened in advance: when all connection slots are in use, it is too late to open one.
pub trait Lines: Send + Sync + 'static {
    /// A connection that can be used now.
    ///
    /// # Errors
    /// Why there is none, in one line.
    fn client(&self) -> impl Future<Output = Result<Arc<Client>, String>> + Send;

    /// Process ids of these connections, as far as known. locktop never acts on them.
    fn pids(&self) -> Vec<i32>;
}

#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub command: &'a ActionCommand,
    pub target: &'a Target,
    /// A short form of the statement with its conditions, such as `pg_terminate_backend(4312)`. It contains no secret.
    pub statement: &'a str,
}

/// If the program or the server ends between [`Record::asked`] and [`Record::told`], the request has no result on
/// record, and its outcome is unknown.
pub trait Record: Send + Sync + 'static {
    /// Records a request before it is sent on `client`; `None` if the target is not on the PostgreSQL server.
    ///
    /// # Errors
    /// Why it could not be recorded and a remedy, in one line: then the request is not sent.
    fn asked(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Records a result, also for an action that was not tried or not recorded before.
    ///
    /// # Errors
    /// Why it could not be recorded, in one line, for the report.
    fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        result: &TargetResult,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Problems since the last call that did not prevent an action, in readable lines.
    fn notes(&self) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(Vec::new())
    }
}

struct Recorder<'a, R> {
    record: &'a R,
    command: &'a ActionCommand,
    /// Problems that did not prevent an action, in readable lines.
    notes: Vec<String>,
    done: usize,
    progress: Progress<'a>,
}

type Progress<'a> = &'a (dyn Fn(usize) + Send + Sync);

impl<'a, R: Record> Recorder<'a, R> {
    fn new(record: &'a R, command: &'a ActionCommand, progress: Progress<'a>) -> Self {
        Self { record, command, notes: Vec::new(), done: 0, progress }
    }

    async fn asked(&self, client: Option<&Client>, target: &Target, statement: &str) -> Result<(), String> {
        let asked = Asked { command: self.command, target, statement };
        let noted = self.record.asked(client, &asked).await;
        noted.map_err(|error| format!("not done, because it could not be recorded: {error}"))
    }

    async fn told(
        &mut self,
        client: Option<&Client>,
        target: &Target,
        statement: &str,
        (outcome, detail): (Outcome, String),
    ) -> TargetResult {
        let result = target.result(outcome, &detail);
        let asked = Asked { command: self.command, target, statement };
        if let Err(error) = self.record.told(client, &asked, &result).await {
            let note = format!("{}: its result is not recorded: {error}", target.name);
            self.notes.push(note);
        }
        self.done += 1;
        (self.progress)(self.done);
        result
    }
}
