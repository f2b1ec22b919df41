//! `--log FILE`: a debug log of locktop itself, for bug reports.
//!
//! Without the option there is no subscriber, and an event costs one atomic read. With it, each event is formatted and
//! redacted where it occurs and written by a separate thread, so that neither the screens nor the poll wait for a disk.

#[cfg(test)]
mod tests;

use std::fmt::{Debug, Write as _};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::time::Duration;

use clap::Args;
use locktop_base::file::{How, open};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::model::statement::redacted::without_userinfo;
use crate::{clock, text};

const HELP: &str = "Append a debug log to this file: connections, polls that fail or are slow, actions. Passwords and quoted \
literals are removed. LOCKTOP_LOG=error, warn, info or debug sets the level [default: info]";

#[derive(Debug, Clone, Default, Args)]
pub struct LogArgs {
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
pub(super) fn start(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<LogWriter, String> {
    let level = level(env("LOCKTOP_LOG").as_deref())?;
    let file = open(path, How::Append).map_err(|error| format!("--log {error}"))?;
    let (log, lines) =
        LogWriter::start(file).map_err(|error| format!("--log {}: {error}", path.display()))?;
    let subscriber = LineFormat { level, sink: lines };
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "a log exists already".to_owned())?;
    tracing::info!("locktop {} begins, process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    Ok(log)
}

/// Formats events as lines: `2026-11-23T14:02:31.123Z WARN feed::journal: a poll failed after 3.1 ms: …`.
struct LineFormat {
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

impl Subscriber for LineFormat {
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

/// Lines that can wait for the disk. Further lines are dropped and counted.
const QUEUE: usize = 1024;

/// How long the exit waits for pending lines.
const TIMEOUT: Duration = Duration::from_millis(500);

enum LogOrder {
    Line(String),
    /// Signals that everything before it is written.
    Flush(Sender<()>),
}

/// Dropping it waits for pending lines, up to `TIMEOUT`.
#[derive(Debug)]
pub(super) struct LogWriter {
    orders: SyncSender<LogOrder>,
}

#[derive(Debug, Clone)]
struct Sink {
    orders: SyncSender<LogOrder>,
    lost: Arc<AtomicU64>,
}

impl LogWriter {
    /// Starts the thread that writes to `file`. Lines are sent through the returned sink.
    fn start(file: impl Write + Send + 'static) -> io::Result<(Self, Sink)> {
        let (orders, received) = mpsc::sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let sink = Sink { orders: orders.clone(), lost: Arc::clone(&lost) };
        let serve = move || serve(file, &received, &lost);
        std::thread::Builder::new().name("log".to_owned()).spawn(serve)?;
        Ok((Self { orders }, sink))
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        let (done, wait) = mpsc::channel();
        // If the disk hangs and the queue is full, do not wait.
        if self.orders.try_send(LogOrder::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(TIMEOUT);
        }
    }
}

impl Sink {
    /// Queues a line without waiting.
    fn write(&self, line: String) {
        if self.orders.try_send(LogOrder::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes each line in one call. Lines that cannot be written are dropped, and their count precedes the next line.
fn serve(mut file: impl Write, received: &Receiver<LogOrder>, lost: &AtomicU64) {
    let mut is_torn = false;
    for order in received {
        match order {
            LogOrder::Line(line) => {
                let missing = lost.swap(0, Ordering::Relaxed);
                let torn = if is_torn { "\n" } else { "" };
                let lost_lines = match missing {
                    0 => String::new(),
                    lines => format!("({lines} lines could not be written)\n"),
                };
                let text = format!("{torn}{lost_lines}{line}\n");
                let (written, done) = write(&mut file, text.as_bytes());
                if done {
                    is_torn = false;
                } else {
                    lost.fetch_add(missing + 1, Ordering::Relaxed);
                    is_torn |= written > 0;
                }
            }
            // The waiting thread may have timed out.
            LogOrder::Flush(done) => drop(done.send(())),
        }
    }
}

/// Returns the bytes written, and whether that was all of them.
fn write(file: &mut impl Write, mut bytes: &[u8]) -> (usize, bool) {
    let mut written = 0;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return (written, false),
            Ok(count) => {
                written += count;
                bytes = bytes.get(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return (written, false),
        }
    }
    (written, true)
}

// Redaction of every log line: removes passwords and quoted text, which can be literals of a statement or values in an
// error message.

/// Longest log line, in columns.
const LONGEST: usize = 1000;

/// Longest name in double quotes that is kept, in bytes.
const NAME: usize = 63;

/// One line without control characters or secrets.
pub(super) fn harmless(said: &str) -> String {
    let line = without_userinfo(&without_passwords(&without_quoted(said)));
    text::fit(&text::one_line_prefix(&line, LONGEST), LONGEST).into_owned()
}

/// Replaces `'x'` by `'?'`, also if the closing quote is missing. Keeps `"x"` only if it can be nothing but a name.
fn without_quoted(said: &str) -> String {
    // The server puts a rejected value in double quotes. Messages in other languages are not recognized, so nothing is kept.
    let has_value = !said.is_ascii()
        || ["input syntax", "invalid ", " value", "out of range"].iter().any(|word| said.contains(word));
    let mut left = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = rest.find(|letter| matches!(letter, '\'' | '"' | '$') || closing(letter).is_some()) {
        let (before, quoted) = rest.split_at(at);
        left.push_str(before);
        if let Some((open, close)) = quoted.chars().next().and_then(|open| Some((open, closing(open)?))) {
            left.extend([open, '?', close]);
            rest = quoted.split_once(close).map_or("", |(_, tail)| tail);
            continue;
        }
        if let Some(tail) = after_dollars(quoted) {
            left.push_str("'?'");
            rest = tail;
            continue;
        }
        let quote = if quoted.starts_with('\'') { '\'' } else { '"' };
        if quoted.starts_with('$') || is_apostrophe(before, quoted) {
            left.push_str(quoted.get(..1).unwrap_or_default());
            rest = quoted.get(1..).unwrap_or_default();
            continue;
        }
        let inner = quoted.get(1..).unwrap_or_default();
        let (content, tail) = within(inner, quote);
        let is_name = quote == '"' && !has_value && content.len() <= NAME && content.chars().all(is_of_name);
        if is_name {
            left.extend([r#"""#, content, r#"""#]);
        } else {
            left.extend([quote, '?', quote]);
        }
        rest = tail;
    }
    left.push_str(rest);
    left
}

/// The closing quote for an opening quote of messages in other languages.
fn closing(open: char) -> Option<char> {
    match open {
        '«' => Some('»'),
        '»' => Some('«'),
        '„' => Some('“'),
        '“' => Some('”'),
        '‘' => Some('’'),
        '「' => Some('」'),
        _ => None,
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '@')
}

/// Whether the quote is the apostrophe of `doesn't`. Any other apostrophe starts a string and removes the text after it,
/// which reveals nothing.
fn is_apostrophe(before: &str, quoted: &str) -> bool {
    before.ends_with('n')
        && quoted.strip_prefix("'t").is_some_and(|rest| rest.chars().next().is_none_or(|next| next == ' '))
}

/// The text up to the closing quote, and the text after it. A doubled quote does not close.
fn within(inner: &str, quote: char) -> (&str, &str) {
    let mut at = 0;
    while let Some(found) = inner.get(at..).and_then(|rest| rest.find(quote)) {
        let end = at + found;
        let tail = inner.get(end + 1..).unwrap_or_default();
        if !tail.starts_with(quote) {
            return (inner.get(..end).unwrap_or_default(), tail);
        }
        at = end + 2;
    }
    (inner, "")
}

/// The text after a dollar-quoted string, if one starts here.
fn after_dollars(quoted: &str) -> Option<&str> {
    let tag = quoted.strip_prefix('$')?;
    let (tag, _) = tag.split_once('$')?;
    let is_tag = tag.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        && !tag.starts_with(|letter: char| letter.is_ascii_digit());
    let delimiter = is_tag.then(|| format!("${tag}$"))?;
    let inner = quoted.get(delimiter.len()..)?;
    Some(inner.split_once(&delimiter).map_or("", |(_, tail)| tail))
}

/// Redacts `password=…`, `password = …` and `"password": …` up to the next blank. Quoted values are already removed.
fn without_passwords(said: &str) -> String {
    const NAME: &str = "password";
    let mut left = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = find_ignoring_case(rest, NAME) {
        let (before, tail) = rest.split_at(at + NAME.len());
        left.push_str(before);
        rest = tail;
        let value = tail.trim_start_matches(['"', ' ', '\t']).strip_prefix(['=', ':']);
        let Some(value) = value.map(|value| value.trim_start_matches([' ', '\t'])) else { continue };
        left.extend([tail.strip_suffix(value).unwrap_or_default(), "?"]);
        let end = value.find(|letter: char| letter.is_whitespace() || letter == '&').unwrap_or(value.len());
        rest = value.get(end..).unwrap_or_default();
    }
    left.push_str(rest);
    left
}

fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    text.as_bytes().windows(word.len()).position(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}
