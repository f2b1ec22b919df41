//! A task that is a program.
//!
//! It runs in a process group of its own, which ends with it, with its time-out, when the work is told to stop, and with the worker, by
//! whatever cause (`watch.sh`). A process that leaves the group is on its own.

mod output;

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};

use self::output::Output;
use super::{Job, Source, WorkError, fields, timed_out};
use std::os::unix::process::ExitStatusExt;

use crate::worker::stop::Stop;

const WATCH: &str = include_str!("watch.sh");

/// How long a group that was asked to end may take, before it is killed. Shorter than the timeout of who told the work to stop.
const GRACE: Duration = Duration::from_secs(3);
/// How long the end of what was killed may take, and the rest of its output.
const KILLED: Duration = Duration::from_secs(1);

/// What a program has of the worker's environment: nothing that could hold a password.
const KEPT: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// A program and what it is given.
#[derive(Debug, PartialEq)]
pub(super) struct Program {
    argv: Vec<String>,
    env: Vec<(String, String)>,
}

impl Program {
    /// From a payload; the error says what is wrong with it.
    pub(super) fn read(payload: &Map<String, Value>) -> Result<Self, String> {
        const WRONG: &str = "has an \"argv\" that is not a list of strings with a program first";
        let argv = payload.get("argv").and_then(Value::as_array).ok_or(WRONG)?;
        let argv: Option<Vec<String>> =
            argv.iter().map(|argument| argument.as_str().map(str::to_owned)).collect();
        let argv = argv.ok_or(WRONG)?;
        // The shell that starts it would take a dash for an option of its own.
        if argv.first().is_none_or(|program| program.is_empty() || program.starts_with('-')) {
            return Err(WRONG.to_owned());
        }
        let env = fields::texts(payload, "env")?;
        let is_name = |name: &str| {
            let first = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            first && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        };
        if let Some((name, _)) = env.iter().find(|(name, _)| !is_name(name)) {
            let name = locktop_base::text::one_line_prefix(name, 60);
            return Err(format!("has an \"env\" with \"{name}\", which is not a name of a variable"));
        }
        Ok(Self { argv, env })
    }
}

/// Runs it to its end: what it has said last.
pub(super) async fn run(
    program: &Program,
    job: &Job,
    limit: Duration,
    stop: &Stop,
) -> Result<String, WorkError> {
    let started = Running::start(program, job);
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

/// A program that runs. Dropped, it is killed with its group.
struct Running {
    child: Child,
    /// To who watches over the group.
    watcher: Option<ChildStdin>,
    output: Output,
}

impl Running {
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
        let output = Output::of(child.stdout.take(), child.stderr.take());
        Ok(Self { child, watcher, output })
    }

    /// Asks the whole group to end, and kills it when it does not.
    async fn end(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            // Fails where nobody watches any more; then there is only the program itself.
            let _ = watcher.write_all(b"\n").await;
            let _ = watcher.flush().await;
        }
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        self.watcher = None;
        if tokio::time::timeout(KILLED, self.child.wait()).await.is_err() {
            let _ = self.child.start_kill();
        }
    }

    /// Kills what the program has left in its group, and says what was said last.
    async fn rest(mut self) -> String {
        self.watcher = None;
        self.output.last(KILLED).await
    }
}

#[cfg(test)]
mod tests;
