//! `locktop check`: takes polls and reports them in the format of a monitoring system. Every failure is also a status.

use std::io::{self, Write};

use pg_connect::conninfo::ConnInfo;

use super::super::settings::CliSettings;
use super::{Failure, configured};
use crate::cli::args::CheckArgs;
use crate::feed::once::{OnceError, snapshots};
use crate::output::check::{CheckLimits, CheckReport, Status, measured_parts, render};
use crate::pg::poll::{self, OpenError};

pub(super) async fn run(settings: CliSettings, arguments: &CheckArgs) -> Result<u8, Failure> {
    let limits = arguments.warning.iter().chain(&arguments.critical).map(|(check, _)| check);
    let is_measured_between = limits.chain(&arguments.only).any(|check| check == "blocked_seconds");
    if arguments.looks == 1 && is_measured_between {
        let why = "blocked_seconds is measured between polls: use --looks 2 or more".to_owned();
        return print(&CheckReport::of_failure(Status::Unknown, why), arguments);
    }
    let taken = tokio::time::timeout(arguments.timeout, Box::pin(take(&settings, arguments))).await;
    let report = taken.unwrap_or_else(|_| {
        let limit = crate::text::duration(arguments.timeout.as_secs_f64());
        CheckReport::of_failure(Status::Unknown, format!("no answer within {limit} (-t)"))
    });
    let info = settings.conninfo.as_ref();
    let server = info.map(ConnInfo::places).unwrap_or_default();
    let database = info.map(|info| info.dbname().to_owned()).unwrap_or_default();
    print(&CheckReport { server, database, ..report }, arguments)
}

/// An invalid command line or config is also reported as a status.
pub(super) fn failed(error: &Failure, arguments: &CheckArgs) -> Result<u8, Failure> {
    print(&CheckReport::of_failure(Status::Unknown, error.to_string()), arguments)
}

fn print(report: &CheckReport, arguments: &CheckArgs) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(render(report, arguments.format).as_bytes())?;
    out.flush()?;
    Ok(report.status().code())
}

async fn take(settings: &CliSettings, arguments: &CheckArgs) -> CheckReport {
    let Some(info) = settings.conninfo.as_ref() else {
        return CheckReport::of_failure(Status::Unknown, "no server to connect to".to_owned());
    };
    let limits = poll::PollLimits { adapter_parts: measured_parts(), ..configured::limits(settings) };
    let with =
        (limits, settings.config.thresholds.clone(), configured::lock_names(settings).without_statements());
    let looked = snapshots(info, with, configured::redis(settings), (arguments.looks, arguments.every));
    match Box::pin(looked).await {
        Ok((views, connect)) => {
            let limits = CheckLimits {
                warning: arguments.warning.iter().cloned().collect(),
                critical: arguments.critical.iter().cloned().collect(),
                only: arguments.only.clone(),
                not: arguments.not.clone(),
                excluded: settings.config.check_exclude.clone(),
            };
            CheckReport::of(&views, connect, arguments.every, &limits)
        }
        Err(error) => {
            let is_down = matches!(error, OnceError::Open(OpenError::Connect(_)));
            let status = if is_down { arguments.down_is } else { Status::Unknown };
            CheckReport::of_failure(status, error.to_string())
        }
    }
}
