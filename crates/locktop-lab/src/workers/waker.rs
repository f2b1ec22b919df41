//! Stopping a process so that it is woken whatever becomes of us: a process that stands still does not notice that its standard
//! input has ended, and would be left behind.

use std::io;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Waits for the end of its input, then wakes whom it is told to. Signals from the terminal are not for it.
const SCRIPT: &str = "trap '' INT TERM HUP; read -r _; kill -CONT \"$1\"";

/// A process that stands still for as long as this lives. It is woken also when our own process is killed.
#[derive(Debug)]
pub(super) struct Sleeper {
    waker: Child,
}

impl Sleeper {
    /// Stops a process, which stands still a moment later.
    pub(super) fn stop(pid: Pid) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "locktop-waker"]).arg(pid.as_raw_nonzero().to_string());
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let waker = command.spawn()?;
        kill_process(pid, Signal::STOP)?;
        Ok(Self { waker })
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.waker.stdin.take());
        // It has nothing else to do than to send one signal.
        let _ = self.waker.wait();
    }
}

/// Whether a process stands still, where the system shows that.
pub(crate) fn stands_still(pid: Pid) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it, in parentheses, can hold anything.
    let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    Some(matches!(state, 'T' | 'Z' | 'X'))
}
