//! The work that `locktop worker` does.

mod command;
mod fields;
mod payload;
mod place;
mod sql;

use super::event::{JobEvent, Report};
use super::stop::Stop;
use super::work::{Work, WorkError};
use super::{Job, Source, Types, WorkerId};
pub use payload::HTTP_REMOVED;
use payload::{Payload, PayloadType, PayloadWork};
use pg_connect::conninfo::ConnInfo;

/// The kinds of work it knows, by a task's type or an item's name, each with its payload:
///
/// - `sleep`, `{"seconds": 1.5}`: does nothing for so long;
/// - `sql`, `{"statement": "…"}`: one statement, on a connection of its own;
/// - `notify`, `{"channel": "…", "payload": "…"}`: a notification, likewise;
/// - `command`, `{"argv": ["…"]}` with `env`: one program, where that is allowed.
///
/// All end when the timeout of the task or item is over, and fail then: a worker that lives enforces the limit itself, so that a recovery
/// only has to deal with those that do not. A number of seconds as `timeout` in the payload takes its place, and is no longer. A task of
/// any other type, or with another payload, fails; such an item is set aside.
///
/// A statement waits for its connection while the server has none left, and for the statement of a worker that lost the same task to
/// end: that time counts.
#[derive(Debug, Clone)]
pub struct Builtin {
    info: ConnInfo,
    commands: bool,
    report: Report,
}

impl Builtin {
    /// `sql` and `notify` run where `info` leads, as the same role. `command` is not allowed.
    #[must_use]
    pub fn new(info: ConnInfo, worker: &WorkerId) -> Self {
        // Cut by the server, and without what it would put a question mark for.
        let info = info.with_application_name(&format!("locktop task of {worker}"));
        Self { info, commands: false, report: Report::nowhere() }
    }

    /// Runs programs too, with the rights of this process: whoever may write to the tables may run any.
    #[must_use]
    pub fn with_commands(self, allowed: bool) -> Self {
        Self { commands: allowed, ..self }
    }

    /// Reports the output of programs there.
    #[must_use]
    pub fn with_report(self, report: Report) -> Self {
        Self { report, ..self }
    }

    /// The types that it knows and may do.
    #[must_use]
    pub fn types(&self) -> Types {
        Types::only(PayloadType::ALL.iter().copied().filter(|kind| self.may(*kind)).map(PayloadType::as_str))
    }

    fn may(&self, kind: PayloadType) -> bool {
        match kind {
            PayloadType::Sleep | PayloadType::Sql | PayloadType::Notify => true,
            PayloadType::Command => self.commands,
        }
    }

    fn read(&self, job: &Job) -> Result<Payload, String> {
        let kind = payload::kind(job)?;
        if !self.may(kind) {
            let name = kind.as_str();
            return Err(format!("the type \"{name}\" is not permitted here: {}", kind.allowed_by()));
        }
        Payload::read(kind, job)
    }

    fn tell(&self, job: &Job, text: String) {
        if !text.is_empty() {
            self.report.tell_of(job, JobEvent::Output(text));
        }
    }
}

impl Work for Builtin {
    async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
        let payload = self.read(job).map_err(WorkError::Refused)?;
        let limit = payload.timeout.unwrap_or(job.timeout);
        match payload.what {
            PayloadWork::Sleep(time) => tokio::select! {
                biased;
                reason = stop.stopped() => Err(WorkError::Stopped(reason)),
                () = tokio::time::sleep(time) => Ok(()),
                () = tokio::time::sleep(limit) => Err(WorkError::Failed(timed_out(limit))),
            },
            PayloadWork::Sql(statement) => {
                sql::run(&self.info, place::key(job), &statement, limit, &stop).await
            }
            PayloadWork::Command(program) => {
                let said = command::run(&program, job, limit, &stop).await?;
                self.tell(job, said);
                Ok(())
            }
        }
    }
}

fn timed_out(limit: std::time::Duration) -> String {
    format!("timed out after {} s", limit.as_secs_f64())
}
