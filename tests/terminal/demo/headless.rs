//! The program without a screen.

use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The program, with only those environment variables of this process that its own server needs.
pub(crate) fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locktop"));
    let keep = |name: &str| {
        matches!(name, "PATH" | "HOME" | "TMPDIR" | "XDG_CACHE_HOME" | "LOCKTOP_PG_BIN" | "LD_LIBRARY_PATH")
    };
    command.env_clear().envs(std::env::vars().filter(|(name, _)| keep(name)));
    command.env("LANG", "C.UTF-8").args(["demo", "--headless"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running demo. Dropping it ends it.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(&mut demo(arguments))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.0.as_ref().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Left {
        self.0.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Its result.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Left {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Left {
    /// The object that it printed.
    pub(crate) fn object(&self) -> serde_json::Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// One of its numbers.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.object()[key].as_u64().unwrap_or_else(|| panic!("{key}: {self:?}"))
    }
}

/// Plays to the end.
pub(crate) fn play(arguments: &[&str]) -> Left {
    Running::start(arguments).finish()
}

/// The worker processes below a process, and their states.
pub(crate) fn workers(of: Pid) -> Vec<(i32, char)> {
    let status = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let rest = stat.rsplit_once(')')?.1.trim_start().to_owned();
        let mut words = rest.split_whitespace();
        let state = words.next()?.chars().next()?;
        Some((state, words.next()?.parse::<i32>().ok()?))
    };
    let is_worker = |pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"demo-worker")
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, status(pid)?)))
        .filter(|(pid, (_, parent))| *parent == of.as_raw_nonzero().get() && is_worker(*pid))
        .map(|(pid, (state, _))| (pid, state))
        .collect()
}
