mod command;
mod payload;
mod sql;

use super::event::{JobEvent, Report};
use super::stop::{Stop, Work, WorkError};
use super::{Job, Source, Types, WorkerId};
pub use payload::HTTP_REMOVED;
use payload::{Payload, PayloadType, PayloadWork};
use pg_connect::conninfo::ConnInfo;
use strum::VariantArray as _;

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
        let allowed = PayloadType::VARIANTS.iter().filter(|kind| self.may(**kind));
        Types::only(allowed.map(<&str>::from))
    }

    fn may(&self, kind: PayloadType) -> bool {
        self.commands || kind != PayloadType::Command
    }

    fn read(&self, job: &Job) -> Result<Payload, String> {
        let kind = payload::kind(job)?;
        if !self.may(kind) {
            return Err("the type \"command\" is not permitted here: --allow-commands permits it".to_owned());
        }
        Payload::read(kind, job)
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
                sql::run(&self.info, sql::key(job), &statement, limit, &stop).await
            }
            PayloadWork::Command(program) => {
                let said = command::run(&program, job, limit, &stop).await?;
                if !said.is_empty() {
                    self.report.send_of(job, JobEvent::Output(said));
                }
                Ok(())
            }
        }
    }
}

fn timed_out(limit: std::time::Duration) -> String {
    format!("timed out after {} s", limit.as_secs_f64())
}
