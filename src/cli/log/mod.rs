//! `--log FILE`: what locktop itself does, for whoever reports a bug.
//!
//! Without the option there is no subscriber, and an event is the read of one number. With it each event is made a line of text where it
//! happens, without what may be a secret, and written by a thread of its own: neither the screens nor the poll wait for a disk.

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

const HELP: &str = "Add to this file what locktop itself does: connections, polls that fail or are slow, actions. No password and \
nothing in quotes is in it. LOCKTOP_LOG=error, warn, info or debug says how much [default: info]";

/// The option.
#[derive(Debug, Clone, Default, Args)]
pub struct LogArgs {
    /// Add to this file what locktop itself does: connections, polls that fail or are slow, actions. No password and nothing in quotes is in it.
    #[arg(long = "log", id = "own_log", value_name = "FILE", help = HELP, help_heading = "Options")]
    pub file: Option<PathBuf>,
}

/// How much is written, as the variable has it.
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

/// Begins the log. What was written is on its way to the disk when the value is dropped.
///
/// # Errors
/// In one line: the level is none, or the file cannot be written.
pub(super) fn start(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Log, String> {
    let level = level(env("LOCKTOP_LOG").as_deref())?;
    let file = open(path, How::Append).map_err(|error| format!("--log {error}"))?;
    let (log, lines) = Log::start(file).map_err(|error| format!("--log {}: {error}", path.display()))?;
    let subscriber = line::Lines::new(level, lines);
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "there is a log already".to_owned())?;
    tracing::info!("locktop {} begins, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    Ok(log)
}
