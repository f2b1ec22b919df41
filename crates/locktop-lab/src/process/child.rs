use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::Pid;

/// A process that ends when its standard input does: a pipe whose other end only this process has, and which closes
/// however this process ends. It is in its own process group, so that only this process receives Ctrl-C from the
/// terminal.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map(Self)
    }

    pub(crate) fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.0.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(format!("{line}\n").as_bytes()))
    }

    /// Closes its standard input, which requests it to end.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.0.stdin.take());
    }

    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Its standard error. Returns once that is closed, which happens when the process ends.
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

    pub(crate) fn kill(&mut self) -> bool {
        self.0.kill().is_ok()
    }

    /// Returns once it has ended; it must have been requested to end before.
    pub(crate) fn wait(&mut self) {
        let _ = self.0.wait();
    }
}
