//! `locktop check`: takes polls and reports them in the format of a monitoring system. Every failure is also a status.

use std::io::{self, Write};

use super::super::check::CheckArgs;
use super::super::settings::Settings;
use super::{Failure, look};
use crate::feed::once::{OnceError, looks};
use crate::pg::poll::{Limits, OpenError};
use crate::wire::check::{Report, Status, measured_parts, render};
use pg_connect::conninfo::ConnInfo;

enum Trouble {
    /// No connection; the status is that of `--down-is`.
    Down(String),
    /// Anything else; the status is UNKNOWN.
    Other(String),
}

pub(super) async fn run(settings: Settings, arguments: &CheckArgs) -> Result<u8, Failure> {
    if arguments.looks == 1 && arguments.names("blocked_seconds") {
        let why = "blocked_seconds is measured between polls: use --looks 2 or more".to_owned();
        return print(&Report::of_failure(Status::Unknown, why), arguments);
    }
    let report = match tokio::time::timeout(arguments.timeout, Box::pin(take(&settings, arguments))).await {
        Ok(Ok(report)) => report,
        Ok(Err(Trouble::Down(why))) => Report::of_failure(arguments.down(), why),
        Ok(Err(Trouble::Other(why))) => Report::of_failure(Status::Unknown, why),
        Err(_) => {
            let limit = crate::text::duration(arguments.timeout.as_secs_f64());
            Report::of_failure(Status::Unknown, format!("no answer within {limit} (-t)"))
        }
    };
    let info = settings.conninfo.as_ref();
    let server = info.map(ConnInfo::places).unwrap_or_default();
    let database = info.map(|info| info.dbname().to_owned()).unwrap_or_default();
    print(&Report { server, database, ..report }, arguments)
}

/// An invalid command line or config is also reported as a status.
pub(super) fn failed(error: &Failure, arguments: &CheckArgs) -> Result<u8, Failure> {
    print(&Report::of_failure(Status::Unknown, error.to_string()), arguments)
}

fn print(report: &Report, arguments: &CheckArgs) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(render(report, arguments.format).as_bytes())?;
    out.flush()?;
    Ok(report.status().code())
}

async fn take(settings: &Settings, arguments: &CheckArgs) -> Result<Report, Trouble> {
    let info =
        settings.conninfo.as_ref().ok_or_else(|| Trouble::Other("no server to connect to".to_owned()))?;
    let limits = Limits { adapter_parts: measured_parts(), ..look::limits(settings) };
    let with = (limits, settings.config.thresholds.clone(), look::lock_names(settings).without_statements());
    let looked = looks(info, with, look::redis(settings), (arguments.looks, arguments.every));
    match Box::pin(looked).await {
        Ok((views, connect)) => {
            let limits = arguments.limits(settings.config.check_exclude.clone());
            Ok(Report::of(&views, connect, arguments.every, &limits))
        }
        Err(OnceError::Open(OpenError::Connect(error))) => Err(Trouble::Down(error.to_string())),
        Err(error) => Err(Trouble::Other(error.to_string())),
    }
}
