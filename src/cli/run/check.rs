//! `locktop check`: some looks, judged, in a monitoring system's words. Whatever goes wrong is a status, too.

use std::io::{self, Write};

use super::super::check::CheckArgs;
use super::super::settings::Settings;
use super::{Failure, look};
use crate::clock;
use crate::feed::once::{OnceError, looks};
use crate::pg::poll::OpenError;
use crate::wire::check::{Report, Status, render};

/// Why there is no report.
enum Trouble {
    /// No connection.
    Down(String),
    /// Anything else.
    Other(String),
}

pub(super) async fn run(settings: Settings, arguments: &CheckArgs) -> Result<u8, Failure> {
    let started = clock::monotonic();
    let report = match tokio::time::timeout(arguments.timeout, Box::pin(take(&settings, arguments))).await {
        Ok(Ok(report)) => report,
        Ok(Err(Trouble::Down(why))) => Report::of_failure(arguments.down(), why),
        Ok(Err(Trouble::Other(why))) => Report::of_failure(Status::Unknown, why),
        Err(_) => {
            let why = format!("no answer within {} s (-t)", started.elapsed().as_secs());
            Report::of_failure(Status::Unknown, why)
        }
    };
    print(&report, arguments)
}

/// What is wrong with the command line or the config: a status as well.
pub(super) fn failed(error: &Failure, arguments: &CheckArgs) -> Result<u8, Failure> {
    print(&Report::of_failure(Status::Unknown, error.to_string()), arguments)
}

fn print(report: &Report, arguments: &CheckArgs) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(render(report, arguments.words()).as_bytes())?;
    out.flush()?;
    Ok(report.status().code())
}

async fn take(settings: &Settings, arguments: &CheckArgs) -> Result<Report, Trouble> {
    let info =
        settings.conninfo.as_ref().ok_or_else(|| Trouble::Other("no server to connect to".to_owned()))?;
    let with = (look::limits(settings), settings.thresholds.clone(), look::lock_names(settings));
    let looked = looks(info, with, look::redis(settings), (arguments.looks, arguments.every));
    match Box::pin(looked).await {
        Ok((views, connect)) => Ok(Report::of(&views, connect, arguments.every, &arguments.limits())),
        Err(OnceError::Open(OpenError::Connect(error))) => Err(Trouble::Down(error.to_string())),
        Err(error) => Err(Trouble::Other(error.to_string())),
    }
}
