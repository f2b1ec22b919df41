//! Stopping a process so that it is woken whatever becomes of us: a process that stands still does not notice that its standard
//! input has ended, and would be left behind.

use std::io;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::child::Process;
use super::server::SHELL;

/// Waits for the end of its input, then wakes whom it is told to. Signals from the terminal are not for it.
const SCRIPT: &str = "trap '' INT TERM HUP; read -r _; kill -CONT \"$1\"";

/// A process that stands still for as long as this lives. It is woken also when our own process is killed.
#[derive(Debug)]
pub(crate) struct Paused {
    waker: Process,
}

impl Paused {
    /// Stops a process, which stands still a moment later.
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
        // It has nothing else to do than to send one signal.
        self.waker.wait();
    }
}

/// Whether a process stands still, where the system shows that.
pub(crate) fn is_stopped(pid: Pid) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it, in parentheses, can hold anything.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(matches!(state, 'T' | 'Z' | 'X'))
}
