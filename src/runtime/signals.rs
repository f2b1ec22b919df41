//! How the screens end: at a signal, or at a panic in any thread or task. And job control: whether a shell can continue the
//! program after it has stopped.
//!
//! A process group is orphaned if no parent of a member is in the same session and in another group (POSIX, Base
//! Definitions, "Orphaned Process Group"). The kernel drops SIGTSTP for such a group, but not SIGSTOP.
//! `ssh -t host locktop`, `xterm -e locktop` and most containers run the program this way.

use std::fs;
use std::io;
use std::panic::PanicHookInfo;
use std::process::exit;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, getpgid, getppid, getsid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use super::terminal;

/// How long the screens have to end, and the terminal to be restored, before the program exits: a write to a terminal that
/// is not read can block forever.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessSignal {
    End(u8),
    Stop,
    Continue,
}

/// Catches terminating signals from now on, and returns the number of the first.
pub fn ending() -> io::Result<impl Future<Output = u8>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = hangup.recv() => 1,
            _ = interrupt.recv() => 2,
            _ = terminate.recv() => 15,
        }
    })
}

/// Listens on a thread other than that of the screens. The second terminating signal ends the program at once.
pub(super) fn listen() -> io::Result<mpsc::UnboundedReceiver<ProcessSignal>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut stop = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?;
    let mut go_on = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    tokio::spawn(async move {
        let mut ending = false;
        loop {
            let signal = tokio::select! {
                _ = terminate.recv() => ProcessSignal::End(15),
                _ = hangup.recv() => ProcessSignal::End(1),
                _ = interrupt.recv() => ProcessSignal::End(2),
                _ = quit.recv() => ProcessSignal::End(3),
                _ = stop.recv() => ProcessSignal::Stop,
                _ = go_on.recv() => ProcessSignal::Continue,
            };
            // No receiver is left once the screens have ended and the program disconnects from the server.
            let _ = sender.send(signal);
            if let ProcessSignal::End(number) = signal {
                if std::mem::replace(&mut ending, true) {
                    end_now(number);
                }
                tokio::spawn(end_in_time(number));
            }
        }
    });
    Ok(receiver)
}

async fn end_in_time(number: u8) {
    tokio::time::sleep(GRACE).await;
    if terminal::is_taken() {
        end_now(number);
    }
}

fn end_now(number: u8) -> ! {
    terminal::give_back_in_time();
    exit(128 + i32::from(number))
}

fn is_asked(place: &str) -> bool {
    cfg!(debug_assertions) && std::env::var_os("LOCKTOP_PANIC").is_some_and(|asked| asked == place)
}

/// Panics on request, in debug builds only, if `LOCKTOP_PANIC` names this place.
///
/// # Panics
/// On purpose.
pub fn panic_if_asked(place: &str) {
    assert!(!is_asked(place), "LOCKTOP_PANIC={place} asks for a panic");
}

/// Panics when SIGUSR1 arrives, if `LOCKTOP_PANIC` names this place. Never returns otherwise.
///
/// # Panics
/// On purpose.
pub async fn panic_at_signal(place: &str) {
    if is_asked(place)
        && let Ok(mut asked) = signal(SignalKind::user_defined1())
    {
        asked.recv().await;
        panic_if_asked(place);
    }
    std::future::pending::<()>().await;
}

const FAILED: i32 = 1;

static CONTINUED: Notify = Notify::const_new();

/// Makes every panic end the screens: the terminal is restored, and the message is written to it. Call it once, before any task is started.
pub fn end_the_screens() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| on_panic(info, &before)));
}

pub(super) async fn continued() {
    CONTINUED.notified().await;
}

fn on_panic(info: &PanicHookInfo<'_>, before: &dyn Fn(&PanicHookInfo<'_>)) {
    terminal::leave_alone();
    let (written, wait) = channel::<()>();
    let watch = move || {
        if wait.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
            exit(FAILED);
        }
    };
    // If the thread cannot be started, there is no time limit, but the message is still written.
    let _ = std::thread::Builder::new().spawn(watch);
    let given_back = terminal::give_back_in_time();
    before(info);
    if !given_back {
        // The screens are blocked in a write as well.
        exit(FAILED);
    }
    drop(written);
    CONTINUED.notify_one();
}

/// Maximum number of parents in one group: a reused process id must not cause an endless loop.
const DEPTH: usize = 64;

/// A process as job control sees it; 0 is an id outside its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: i32,
    group: i32,
    session: i32,
}

/// Whether the program has a shell that notices when it stops, and can continue it.
pub(super) fn has_shell() -> bool {
    own().is_some_and(|own| has_job_control(own, process, is_shell))
}

/// Follows the parents to the first one in another group. Process 1 adopts orphans and is the main process of a container,
/// but never continues a job, so it counts only if it is a shell itself.
fn has_job_control(
    own: Process,
    process_of: impl Fn(i32) -> Option<Process>,
    is_shell: impl Fn(i32) -> bool,
) -> bool {
    // The group of the session leader: the processes above it are in other sessions.
    if own.group == own.session {
        return false;
    }
    let mut parent = own.parent;
    for _ in 0..DEPTH {
        let Some(process) = process_of(parent).filter(|process| process.session == own.session) else {
            return false;
        };
        if process.group != own.group {
            return parent != 1 || is_shell(parent);
        }
        parent = process.parent;
    }
    false
}

fn own() -> Option<Process> {
    read("self").or_else(|| ask(None, getppid().map_or(0, Pid::as_raw_pid)))
}

fn process(pid: i32) -> Option<Process> {
    let known = Pid::from_raw(pid.max(0))?;
    read(&pid.to_string()).or_else(|| {
        // The parent of another process cannot be queried. The session leader is the shell above most jobs.
        let leader = getsid(Some(known)).ok()?;
        ask(Some(known), leader.as_raw_pid())
    })
}

/// For systems without `/proc`, or where it hides the processes of other users.
fn ask(pid: Option<Pid>, parent: i32) -> Option<Process> {
    let (group, session) = (getpgid(pid).ok()?, getsid(pid).ok()?);
    Some(Process { parent, group: group.as_raw_pid(), session: session.as_raw_pid() })
}

fn read(pid: &str) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Linux's `/proc/pid/stat` (`proc_pid_stat(5)`): name in parentheses, which can contain any characters, state, parent,
/// group, session.
fn parse(stat: &str) -> Option<Process> {
    let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Process { parent: next()?, group: next()?, session: next()? })
}

fn is_shell(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end().ends_with("sh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the last process. Each is (process, parent, group, session).
    fn last_has_job_control(processes: &[(i32, i32, i32, i32)], first_is_shell: bool) -> bool {
        let process_of = |pid| {
            let &(_, parent, group, session) = processes.iter().find(|process| process.0 == pid)?;
            Some(Process { parent, group, session })
        };
        let own = process_of(processes.last().unwrap().0).unwrap();
        has_job_control(own, process_of, |_| first_is_shell)
    }

    #[test]
    fn a_shell_above_is_found() {
        let above = [(1, 0, 1, 1), (5, 1, 5, 5), (10, 5, 10, 10)];
        let with = |more: &[_]| last_has_job_control(&[&above, more].concat(), false);
        assert!(with(&[(20, 10, 20, 10)]));
        // A script in between is in the same group.
        assert!(with(&[(20, 10, 20, 10), (21, 20, 20, 10), (22, 21, 20, 10)]));
        // The session leader, then a process in the group of a leader that is a shell without job control.
        assert!(!with(&[(20, 5, 20, 20)]));
        assert!(!with(&[(20, 10, 10, 10)]));
        // The shell has exited: the next parent is in another session.
        assert!(!with(&[(20, 1, 20, 10)]));
        assert!(!with(&[(20, 5, 20, 10), (21, 20, 20, 10)]));
        assert!(!with(&[(20, 19, 20, 10)]));
        // No process is its own parent, but the search must end.
        assert!(!with(&[(20, 20, 20, 10)]));
    }

    #[test]
    fn process_1_provides_job_control_only_if_it_is_a_shell() {
        let container = [(1, 0, 1, 1), (7, 1, 7, 1)];
        assert!(last_has_job_control(&container, true));
        assert!(!last_has_job_control(&container, false));
        assert!(!last_has_job_control(&[(1, 0, 1, 1), (7, 1, 1, 1)], true));
        assert!(!last_has_job_control(&[(1, 0, 1, 1)], true));
    }

    #[test]
    fn a_name_with_parentheses_is_read_over() {
        let expected = Process { parent: 4, group: 5, session: 6 };
        assert_eq!(parse("9 (a) S 1 (b) T 4 5 6 34816 5"), Some(expected));
        assert_eq!(parse("9 (a) S 4 5"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn both_ways_to_ask_agree() {
        let own = own().unwrap();
        if own.group > 0 && own.session > 0 {
            assert_eq!(ask(None, getppid().map_or(0, Pid::as_raw_pid)), Some(own));
        }
    }
}
