//! Who keeps the record: what is going to be asked is noted before it is asked, and what came of it after.

use std::future::Future;

use tokio_postgres::Client;

use crate::model::plan::{ActionCommand, Outcome, Target, TargetResult};
use crate::text::one_line;

/// What is asked of one target.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The command that it is a part of.
    pub command: &'a ActionCommand,
    /// The target that is asked about.
    pub target: &'a Target,
    /// What is sent, in short: `pg_terminate_backend(4312)` and under which conditions. No secret is in it.
    pub statement: &'a str,
}

/// Keeps the record.
///
/// Between [`Record::asked`] and [`Record::told`] the program may end, or the server: what was asked then has no result on
/// record, and its outcome is not known.
pub trait Record: Send + Sync + 'static {
    /// Notes that this is going to be asked for. The connection is the one that it will be asked on; none where the target is on
    /// no server of ours.
    ///
    /// # Errors
    /// Why it could not be noted and what helps, in one line: then it is not asked for.
    fn asked(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Notes what came of it, also where it was not tried or not noted before.
    ///
    /// # Errors
    /// Why it could not be noted, in one line: the report says so.
    fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        result: &TargetResult,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// What went wrong beside the record since this was asked last and kept nobody from acting, in lines for people.
    fn notes(&self) -> impl Future<Output = Vec<String>> + Send {
        std::future::ready(Vec::new())
    }
}

/// What is put on record of one command, and what its targets came to so far.
pub(super) struct Recorder<'a, R> {
    record: &'a R,
    /// The command that is being carried out.
    pub(super) command: &'a ActionCommand,
    /// What went wrong beside the record, in lines for people.
    pub(super) notes: Vec<String>,
    /// For how many targets it is known what came of them.
    done: usize,
    progress: Progress<'a>,
}

/// Hears of how many targets it is known what came of them.
pub(super) type Progress<'a> = &'a (dyn Fn(usize) + Send + Sync);

impl<'a, R: Record> Recorder<'a, R> {
    pub(super) fn new(record: &'a R, command: &'a ActionCommand, progress: Progress<'a>) -> Self {
        Self { record, command, notes: Vec::new(), done: 0, progress }
    }

    /// Notes that this is going to be asked for; why not, where it is not to be asked for then.
    pub(super) async fn asked(
        &self,
        client: Option<&Client>,
        target: &Target,
        statement: &str,
    ) -> Result<(), String> {
        let asked = Asked { command: self.command, target, statement };
        let noted = self.record.asked(client, &asked).await;
        noted.map_err(|error| format!("not done, because it could not be recorded: {error}"))
    }

    /// Puts on record what came of a target, and counts it as done.
    pub(super) async fn told(
        &mut self,
        client: Option<&Client>,
        target: &Target,
        statement: &str,
        (outcome, detail): (Outcome, String),
    ) -> TargetResult {
        let result = TargetResult {
            name: target.name.clone(),
            subject: target.subject,
            outcome,
            detail: one_line(&detail).into_owned(),
        };
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
