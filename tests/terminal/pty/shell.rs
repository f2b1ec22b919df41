//! The minimum of a shell that job control needs: the program is a job in its own process group, in the
//! foreground.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::stdio::stdin;
use rustix::termios::tcsetpgrp;

use super::screen::{PROGRAM, Screen, Size};

/// The program's arguments, a line each.
const ARGUMENTS: &str = "TEST_SHELL_ARGUMENTS";

/// Starts the program with these arguments in such a shell.
pub(crate) fn with_job_control(size: Size, arguments: &[&str]) -> Screen {
    let this = std::env::current_exe().unwrap();
    let words = [this.to_str().unwrap(), "--exact", "pty::shell::shell", "--ignored", "--nocapture"];
    Screen::spawn_shell(size, &[(ARGUMENTS, &arguments.join("\n"))], &words)
}

#[test]
#[ignore = "the shell that other tests start"]
fn shell() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let mut command = Command::new(PROGRAM);
    command.args(arguments.lines()).env_remove(ARGUMENTS).process_group(0);
    let mut program = command.spawn().unwrap();
    let group = Pid::from_child(&program);
    tcsetpgrp(stdin(), group).unwrap();
    // The program may have used the terminal before its group was in the foreground, and have been stopped
    // for that.
    kill_process_group(group, Signal::CONT).unwrap();
    let status = program.wait().unwrap();
    std::process::exit(status.code().or_else(|| Some(128 + status.signal()?)).unwrap());
}
