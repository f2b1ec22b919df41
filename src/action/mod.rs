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

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

pub use locktop_tasks::actor::Actor;
use locktop_tasks::{actor, message};
use tokio_postgres::Client;

use crate::model::plan::{Outcome, Target, TargetResult, Verb};

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
    /// The number of its command.
    pub number: u64,
    pub verb: Verb,
    pub target: &'a Target,
    /// A short form of the statement with its conditions, such as `pg_terminate_backend(4312)`. It contains no secret.
    pub statement: &'a str,
}

/// If the program or the server ends between [`Record::asked`] and [`Record::told`], the request has no result on
/// record, and its outcome is unknown.
pub trait Record: Send + Sync + 'static {
    /// A request on record, until its result is.
    type Entry: Send;

    /// Records a request before it is sent on `client`; `None` if the target is not on the PostgreSQL server.
    ///
    /// # Errors
    /// Why it could not be recorded and a remedy, in one line: then the request is not sent.
    fn asked(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
    ) -> impl Future<Output = Result<Self::Entry, String>> + Send;

    /// Records a result; without an entry that of an action that was not tried, or not recorded before.
    ///
    /// # Errors
    /// Why it could not be recorded, in one line, for the report.
    fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        entry: Option<Self::Entry>,
        result: &TargetResult,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Problems since the last call that did not prevent an action, in readable lines.
    fn notes(&self) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(Vec::new())
    }
}

type Progress<'a> = &'a (dyn Fn(usize) + Send + Sync);

/// Records the results of a command.
struct Recorder<'a, R> {
    record: &'a R,
    client: Option<&'a Client>,
    /// Problems that did not prevent an action, in readable lines.
    notes: Vec<String>,
    /// The results so far, by the places of their targets.
    results: BTreeMap<usize, TargetResult>,
    progress: Progress<'a>,
}

impl<R: Record> Recorder<'_, R> {
    async fn told(
        &mut self,
        (place, asked): (usize, Asked<'_>),
        entry: Option<R::Entry>,
        (outcome, detail): (Outcome, String),
    ) {
        let result = asked.target.result(outcome, &detail);
        if let Err(error) = self.record.told(self.client, &asked, entry, &result).await {
            self.notes.push(format!("{}: its result is not recorded: {error}", asked.target.name));
        }
        self.results.insert(place, result);
        (self.progress)(self.results.len());
    }
}
