//! Stops a process so that it is resumed whatever happens to this process: a stopped process does not notice that its
//! standard input has closed, and would be left behind.

use std::io;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::child::Process;
use super::server::SHELL;

/// Waits for the end of its input, then resumes the given process. Ignores signals from the terminal.
const SCRIPT: &str = "trap '' INT TERM HUP; read -r _; kill -CONT \"$1\"";

/// Keeps a process stopped while this lives. It is resumed even if this process is killed.
#[derive(Debug)]
pub(crate) struct Paused {
    waker: Process,
}

impl Paused {
    /// Stops a process; it stops a moment later.
    pub(crate) fn new(pid: Pid) -> io::Result<Self> {
        let mut command = Command::new(SHELL);
        command.args(["-c", SCRIPT, "locktop-waker"]).arg(pid.as_raw_nonzero().to_string());
        let waker = Process::start(&mut command)?;
        kill_process(pid, Signal::STOP)?;
        Ok(Self { waker })
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.waker.close_stdin();
        // Its only task is to send one signal.
        self.waker.wait();
    }
}

/// Whether a process is stopped, if the system shows that.
pub(crate) fn is_stopped(pid: Pid) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it, in parentheses, can contain anything.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(matches!(state, 'T' | 'Z' | 'X'))
}
