//! The program itself, in a clean environment.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use locktop::clock;

/// Longest time for a program to end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program, without any environment variable of this process that could change its behavior.
pub(crate) fn locktop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locktop"));
    let keep = |name: &str| matches!(name, "PATH" | "TMPDIR" | "LD_LIBRARY_PATH" | "LLVM_PROFILE_FILE");
    command.env_clear().envs(std::env::vars().filter(|(name, _)| keep(name)));
    command.env("HOME", "/nonexistent").env("LANG", "C.UTF-8");
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The result of a program: exit status, standard output, standard error.
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
            out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }
}

/// Runs the program until it ends; kills it and fails if it does not end in time.
pub(crate) fn run(mut command: Command) -> Left {
    let child = command.spawn().unwrap();
    finish(child, &format!("{command:?}"))
}

/// Waits for the end of a program that was started before.
pub(crate) fn finish(child: Child, what: &str) -> Left {
    let pid = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || sender.send(child.wait_with_output()));
    let start = clock::monotonic();
    let Ok(output) = receiver.recv_timeout(TIMEOUT) else {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("{what} has not ended after {:?}", start.elapsed());
    };
    reader.join().unwrap().unwrap();
    output.unwrap().into()
}

/// The same without blocking the thread of the test.
pub(crate) async fn run_beside(command: Command) -> Left {
    tokio::task::spawn_blocking(move || run(command)).await.unwrap()
}
