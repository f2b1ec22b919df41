//! A process that ends when we do.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::Pid;

/// A process that ends when its standard input does: a pipe whose other end only we have, and which closes however we end. It is in a group
/// of its own: Ctrl-C at the terminal is for us to hear.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map(Self)
    }

    /// A line on its standard input.
    pub(crate) fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.0.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(format!("{line}\n").as_bytes()))
    }

    /// Ends its standard input: it is to end.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.0.stdin.take());
    }

    /// How it ended; none while it runs.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// What it wrote on its standard error. Returns once that has ended, as it has with the process.
    pub(crate) fn stderr(&mut self) -> String {
        let mut said = String::new();
        if let Some(pipe) = &mut self.0.stderr {
            let _ = pipe.read_to_string(&mut said);
        }
        said.trim().to_owned()
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }

    /// Kills it with SIGKILL; false where that cannot be done.
    pub(crate) fn kill(&mut self) -> bool {
        self.0.kill().is_ok()
    }

    /// Returns once it has ended, which it was told to before.
    pub(crate) fn wait(&mut self) {
        let _ = self.0.wait();
    }
}
