//! A task that is a program.
//!
//! The program runs in a process group of its own. The group ends with the program, at its timeout, when the work has
//! to stop, and when the worker ends for any reason (`watch.sh`). A process that leaves the group is not stopped.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::task::JoinSet;

use super::{Job, Source, WorkError, timed_out};
use crate::worker::stop::Stop;
use locktop_base::text::{fit, one_line_prefix};

const WATCH: &str = include_str!("watch.sh");

/// How long a terminated group may take before it is killed. Shorter than the timeout of the caller that stops the
/// work.
const GRACE: Duration = Duration::from_secs(3);
/// How long a killed group may take to end, with the rest of its output.
const KILLED: Duration = Duration::from_secs(1);

/// Environment variables that a program inherits from the worker: none that could hold a password.
const KEPT: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Bytes of output that are kept: the end.
const KEPT_BYTES: usize = 16 * 1024;
/// Lines that are reported, and the length of each.
const LINES: usize = 10;
const WIDTH: usize = 300;

#[derive(Debug, PartialEq)]
pub(super) struct Program {
    argv: Vec<String>,
    env: Vec<(String, String)>,
}

impl Program {
    pub(super) fn read(payload: &Map<String, Value>) -> Result<Self, String> {
        const WRONG: &str = "has an \"argv\" that is not a list of strings with a program first";
        let argv = payload.get("argv").and_then(Value::as_array).ok_or(WRONG)?;
        let argv: Option<Vec<String>> =
            argv.iter().map(|argument| argument.as_str().map(str::to_owned)).collect();
        let argv = argv.ok_or(WRONG)?;
        // The shell that starts it would take a leading dash as its own option.
        if argv.first().is_none_or(|program| program.is_empty() || program.starts_with('-')) {
            return Err(WRONG.to_owned());
        }
        let env = texts(payload, "env")?;
        let is_name = |name: &str| {
            let first = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            first && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        };
        if let Some((name, _)) = env.iter().find(|(name, _)| !is_name(name)) {
            let name = one_line_prefix(name, 60);
            return Err(format!("has an \"env\" with \"{name}\", which is not a name of a variable"));
        }
        Ok(Self { argv, env })
    }
}

/// The entries of an optional object of strings.
fn texts(payload: &Map<String, Value>, name: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("has a \"{name}\" that is not an object of strings");
    match payload.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Object(values)) => {
            let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            values.iter().map(pair).collect::<Option<_>>().ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}

/// Runs it to its end, and returns the end of its output.
pub(super) async fn run(
    program: &Program,
    job: &Job,
    limit: Duration,
    stop: &Stop,
) -> Result<String, WorkError> {
    let started = RunningCommand::start(program, job);
    let mut running = started.map_err(|error| WorkError::Failed(format!("cannot be started: {error}")))?;
    let early = tokio::select! {
        biased;
        reason = stop.stopped() => WorkError::Stopped(reason),
        status = running.child.wait() => {
            let said = running.rest().await;
            return match status {
                Ok(status) if status.success() => Ok(said),
                Ok(status) => Err(WorkError::Failed(with(&ended(status), &said))),
                Err(error) => Err(WorkError::Failed(format!("its exit status is not known: {error}"))),
            };
        }
        () = tokio::time::sleep(limit) => WorkError::Failed(timed_out(limit)),
    };
    running.end().await;
    let said = running.rest().await;
    Err(match early {
        WorkError::Failed(reason) => WorkError::Failed(with(&reason, &said)),
        early => early,
    })
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

fn with(reason: &str, said: &str) -> String {
    if said.is_empty() { reason.to_owned() } else { format!("{reason}: {said}") }
}

/// A running program. Dropping it kills the whole group.
struct RunningCommand {
    child: Child,
    /// To the watcher of the group.
    watcher: Option<ChildStdin>,
    output: Output,
}

impl RunningCommand {
    fn start(program: &Program, job: &Job) -> std::io::Result<Self> {
        let mut command = tokio::process::Command::new("/bin/sh");
        command.args(["-c", WATCH, "sh"]).args(&program.argv);
        command.env_clear();
        command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        let source = match job.source {
            Source::Tasks => "task",
            Source::Queue => "item",
        };
        command.env("LOCKTOP_SOURCE", source).env("LOCKTOP_NAME", &job.name);
        command.env("LOCKTOP_ID", job.id.to_string()).env("LOCKTOP_ATTEMPT", job.attempt.to_string());
        command.envs(program.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let watcher = child.stdin.take();
        let output = Output::of(&mut child);
        Ok(Self { child, watcher, output })
    }

    /// Terminates the whole group, and kills it if it does not end.
    async fn end(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            // Fails if the watcher has ended; then only the program itself is left.
            let _ = watcher.write_all(b"\n").await;
            let _ = watcher.flush().await;
        }
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        self.watcher = None;
        if tokio::time::timeout(KILLED, self.child.wait()).await.is_err() {
            let _ = self.child.start_kill();
        }
    }

    /// Kills the rest of the group, and returns the end of the output.
    async fn rest(mut self) -> String {
        self.watcher = None;
        self.output.last(KILLED).await
    }
}

/// Standard output and standard error, in the order of arrival.
#[derive(Debug)]
struct Output {
    tail: Arc<Mutex<Tail>>,
    readers: JoinSet<()>,
}

impl Output {
    fn of(child: &mut Child) -> Self {
        let tail = Arc::<Mutex<Tail>>::default();
        let mut readers = JoinSet::new();
        if let Some(out) = child.stdout.take() {
            readers.spawn(read(out, Arc::clone(&tail)));
        }
        if let Some(err) = child.stderr.take() {
            readers.spawn(read(err, Arc::clone(&tail)));
        }
        Self { tail, readers }
    }

    /// The last lines, at the end of all output or after `limit`.
    async fn last(mut self, limit: Duration) -> String {
        let _ =
            tokio::time::timeout(limit, async { while self.readers.join_next().await.is_some() {} }).await;
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).lines()
    }
}

/// Reads to the end, because a program whose pipe is full would wait.
async fn read(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let said = buffer.get(..count).unwrap_or_default();
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }
}

#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, said: &[u8]) {
        let said = said.get(said.len().saturating_sub(KEPT_BYTES)..).unwrap_or_default();
        let over = (self.0.len() + said.len()).saturating_sub(KEPT_BYTES);
        self.0.drain(..over);
        self.0.extend(said);
    }

    /// The last lines, sanitized.
    fn lines(&mut self) -> String {
        let text = String::from_utf8_lossy(self.0.make_contiguous());
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        let last = last.iter().map(|line| fit(&one_line_prefix(line, WIDTH), WIDTH).into_owned());
        last.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests;
