mod command;
mod fields;
mod payload;
mod place;
mod sql;

use super::event::{JobEvent, Report};
use super::stop::Stop;
use super::stop::{Work, WorkError};
use super::{Job, Source, Types, WorkerId};
pub use payload::HTTP_REMOVED;
use payload::{Payload, PayloadType, PayloadWork};
use pg_connect::conninfo::ConnInfo;

/// The built-in kinds of work, by a task's type or an item's name, each with its payload:
///
/// - `sleep`, `{"seconds": 1.5}`: does nothing for that time;
/// - `sql`, `{"statement": "…"}`: one statement, on a connection of its own;
/// - `notify`, `{"channel": "…", "payload": "…"}`: a notification, on a connection of its own;
/// - `command`, `{"argv": ["…"]}` with `env`: one program, if programs are allowed.
///
/// All end and fail when the timeout of the task or item is over: a live worker enforces the limit itself, so that a
/// recovery only has to handle lost workers. A `timeout` in the payload, a number of seconds, replaces it and may not
/// be longer. A task of any other type, or with an invalid payload, fails; such an item is set aside.
///
/// A statement waits for a connection while the server has none left, and for the end of the statement of a worker that
/// lost the same task; that time counts.
#[derive(Debug, Clone)]
pub struct Builtin {
    info: ConnInfo,
    commands: bool,
    report: Report,
}

impl Builtin {
    /// `sql` and `notify` connect as `info` says, as the same role. `command` is not allowed.
    #[must_use]
    pub fn new(info: ConnInfo, worker: &WorkerId) -> Self {
        // The server truncates the name, and replaces some characters by question marks.
        let info = info.with_application_name(&format!("locktop task of {worker}"));
        Self { info, commands: false, report: Report::nowhere() }
    }

    /// Allows programs, which run with the rights of this process: each role that may write to the tables can run any
    /// program.
    #[must_use]
    pub fn with_commands(self, allowed: bool) -> Self {
        Self { commands: allowed, ..self }
    }

    /// Reports the output of programs to `report`.
    #[must_use]
    pub fn with_report(self, report: Report) -> Self {
        Self { report, ..self }
    }

    /// The types that it knows and is allowed to run.
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
