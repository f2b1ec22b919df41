//! `--log FILE`: a debug log of locktop itself, for bug reports.
//!
//! Without the option there is no subscriber, and an event costs one atomic read. With it, each event is formatted and
//! redacted where it occurs and written by a separate thread, so that neither the screens nor the poll wait for a disk.

mod file;
mod redact;
#[cfg(test)]
mod tests;

use std::fmt::{Debug, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::clock;
use locktop_base::file::{How, open};

pub(super) use file::Log;
use file::Sink;
use redact::harmless;

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
    let subscriber = Lines { level, sink: lines };
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "a log exists already".to_owned())?;
    tracing::info!("locktop {} begins, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    Ok(log)
}

/// Formats events as lines: `2026-11-23T14:02:31.123Z WARN feed::journal: a poll failed after 3.1 ms: …`.
struct Lines {
    level: LevelFilter,
    sink: Sink,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with("locktop")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let at = clock::wall().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let metadata = event.metadata();
        let place = metadata.target().strip_prefix("locktop::").unwrap_or(metadata.target());
        self.sink.write(format!("{at} {:<5} {place}: {}", metadata.level(), harmless(&text.0)));
    }

    // locktop uses no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
