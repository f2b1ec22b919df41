//! `--log FILE`: a debug log of locktop itself, for bug reports.
//!
//! Without the option there is no subscriber, and an event costs one atomic read. With it, each event is formatted and
//! redacted where it occurs and written by a separate thread, so that neither the screens nor the poll wait for a disk.

mod file;
mod line;
mod redact;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use clap::Args;
use locktop_base::file::{How, open};
use tracing::level_filters::LevelFilter;

pub(super) use file::Log;

const HELP: &str = "Append a debug log to this file: connections, polls that fail or are slow, actions. Passwords and quoted \
literals are removed. LOCKTOP_LOG=error, warn, info or debug sets the level [default: info]";

/// The option.
#[derive(Debug, Clone, Default, Args)]
pub struct LogArgs {
    /// Append a debug log to this file: connections, polls that fail or are slow, actions. Passwords and quoted literals are removed.
    #[arg(long = "log", id = "own_log", value_name = "FILE", help = HELP, help_heading = "General")]
    pub file: Option<PathBuf>,
}

fn level(text: Option<&str>) -> Result<LevelFilter, String> {
    match text.unwrap_or_default() {
        "" | "info" => Ok(LevelFilter::INFO),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "debug" => Ok(LevelFilter::DEBUG),
        other => {
            let other = crate::text::one_line(other);
            Err(format!("LOCKTOP_LOG is \"{other}\": expected error, warn, info or debug"))
        }
    }
}

/// Starts the log. Dropping the value flushes it.
///
/// # Errors
/// The level is unknown, or the file cannot be written.
pub(super) fn start(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Log, String> {
    let level = level(env("LOCKTOP_LOG").as_deref())?;
    let file = open(path, How::Append).map_err(|error| format!("--log {error}"))?;
    let (log, lines) = Log::start(file).map_err(|error| format!("--log {}: {error}", path.display()))?;
    let subscriber = line::Lines::new(level, lines);
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "a log exists already".to_owned())?;
    tracing::info!("locktop {} begins, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    Ok(log)
}
