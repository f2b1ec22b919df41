//! `locktop lock` and `locktop lead`: a program that runs while a lock is held.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};
use rustix::termios::tcgetpgrp;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::super::settings::CliSettings;
use super::{Failure, status_line};
use crate::cli::schema::{LeadArgs, LeaseOptions, LockArgs};
use crate::locks::advisory::{Guard, Locks, Wait};
use crate::locks::lease::{Lease, LeaseId, Request};
use crate::locks::{Error, Held as _, Lost};
use pg_connect::Backoff;
use pg_connect::conninfo::ConnInfo;

/// Of sysexits.h, `EX_TEMPFAIL`: the lock is taken.
const BUSY: u8 = 75;
const LOST: u8 = 76;
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

pub(super) async fn lock(settings: CliSettings, arguments: &LockArgs) -> Result<u8, Failure> {
    let mut signals = Signals::new()?;
    let wait = match arguments.wait {
        None => Wait::Forever,
        Some(Duration::ZERO) => Wait::Never,
        Some(limit) => Wait::AtMost(limit),
    };
    let request = request(&arguments.name, &arguments.lease)?;
    let take = async |info: ConnInfo| -> Result<Option<Taken>, Error> {
        if let Some(request) = &request {
            return Ok(lease(&info, request, wait).await?.map(|lease| Taken::Lease(request.term, lease)));
        }
        let (locks, name) = (Locks::new(info), arguments.name.as_str());
        let guard =
            if arguments.shared { locks.shared(name, wait).await } else { locks.try_lock(name, wait).await };
        Ok(guard?.map(Taken::Lock))
    };
    let answer = signals.or(Box::pin(asking(&settings, "locktop lock", &mut None, take))).await??;
    let Some(taken) = answer? else {
        status_line(&format!("{} is taken", arguments.name));
        return Ok(BUSY);
    };
    Ok(taken.run(&arguments.command, &mut signals).await?.unwrap_or(LOST))
}

pub(super) async fn lead(settings: CliSettings, arguments: &LeadArgs) -> Result<u8, Failure> {
    let mut signals = Signals::new()?;
    let mut backoff = Backoff::default();
    let mut info = None;
    let request = request(&arguments.name, &arguments.lease)?;
    // Tested for a pooler once.
    let known = std::cell::OnceCell::new();
    loop {
        let take = async |info: ConnInfo| {
            if let Some(request) = &request {
                let lease = lease(&info, request, Wait::Forever).await?;
                return Ok(lease.map(|lease| Taken::Lease(request.term, lease)));
            }
            let locks = known.get().cloned().unwrap_or_else(|| Locks::new(info));
            let guard = locks.elect(arguments.name.as_str()).await?;
            let _ = known.set(locks);
            Ok::<_, Error>(Some(Taken::Lock(guard)))
        };
        let ended = match signals.or(Box::pin(asking(&settings, "locktop lead", &mut info, take))).await?? {
            Ok(Some(taken)) => taken.run(&arguments.command, &mut signals).await?,
            // The longest wait is over.
            Ok(None) => None,
            Err(error) if error.is_transient() => {
                status_line(&error.to_string());
                let pause = tokio::time::sleep(backoff.failed(matches!(error, Error::Silent { .. })));
                signals.or(pause).await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(status) = ended {
            return Ok(status);
        }
        backoff = Backoff::default();
    }
}

enum Taken {
    Lock(Guard),
    /// With its term.
    Lease(Duration, Lease),
}

impl Taken {
    /// Runs the program under the lock or lease; `None` if that was lost.
    async fn run(self, command: &[OsString], signals: &mut Signals) -> Result<Option<u8>, Failure> {
        match self {
            Self::Lock(guard) => {
                let ended = run(command, (None, GRACE), signals, guard.lost()).await?;
                if ended.is_some()
                    && let Err(error) = guard.release().await
                {
                    status_line(&error.to_string());
                }
                Ok(ended)
            }
            Self::Lease(term, lease) => {
                let token = lease.token().to_string();
                // A lease is reported as lost a tenth of its term before another owner may have it.
                let limits = (Some(&*token), GRACE.min(term / 10));
                let ended = run(command, limits, signals, lease.lost()).await?;
                // A lease that is lost, or whose server is out of reach, ends with its term.
                let _ = lease.release().await;
                Ok(ended)
            }
        }
    }
}

/// The lease with this name; a name that is a number is an id.
fn request(name: &str, options: &LeaseOptions) -> Result<Option<Request>, Failure> {
    let Some(term) = options.lease else { return Ok(None) };
    let id = match name.parse::<i32>() {
        Ok(number) if number.to_string() == name => LeaseId::Number(number),
        Err(_) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(Failure::Usage(format!(
                "--lease: the number {name} is larger than any lease's, {}",
                i32::MAX
            )));
        }
        _ => name.into(),
    };
    let host = whoami::hostname().unwrap_or_else(|_| "localhost".to_owned());
    let owner = format!("{host}:{}", std::process::id());
    Ok(Some(Request { schema: options.schema.clone(), ..Request::new(id, &owner, term) }))
}

async fn lease(info: &ConnInfo, request: &Request, wait: Wait) -> Result<Option<Lease>, Error> {
    match wait {
        Wait::Never => Lease::acquire(info, request).await,
        Wait::AtMost(limit) => Lease::acquire_within(info, request, limit).await,
        Wait::Forever => Lease::acquire_within(info, request, Duration::MAX).await,
    }
}

/// Asks for a password if the server or a key needs one, and only once. The session has this `application_name`, unless another
/// is given.
async fn asking<T>(
    settings: &CliSettings,
    name: &str,
    known: &mut Option<ConnInfo>,
    take: impl AsyncFn(ConnInfo) -> Result<T, Error>,
) -> Result<Result<T, Error>, Failure> {
    let mut info = match known.take() {
        Some(info) => info,
        None => super::info(settings)?,
    };
    if info.application_name() == "locktop" {
        info = info.with_application_name(name);
    }
    loop {
        *known = Some(info.clone());
        match take(info.clone()).await {
            Err(Error::Connect(error)) => match super::ask_again(settings, &info, &error) {
                Ok(asked) => info = asked,
                Err(_) => return Ok(Err(error.into())),
            },
            answer => return Ok(answer),
        }
    }
}

/// Runs the program; its exit status, or `None` if the lock was lost, and the program was ended.
async fn run(
    command: &[OsString],
    (token, grace): (Option<&str>, Duration),
    signals: &mut Signals,
    lost: impl Future<Output = Lost>,
) -> Result<Option<u8>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::Usage("no program to run".to_owned()));
    };
    let mut start = Command::new(program);
    start.args(arguments).env_remove("LOCKTOP_TOKEN").kill_on_drop(true);
    // On a terminal it stays in the group that the terminal sends its signals to.
    let is_group = terminal().is_none();
    if is_group {
        start.process_group(0);
    }
    if let Some(token) = token {
        start.env("LOCKTOP_TOKEN", token);
    }
    let mut child = match start.spawn() {
        Ok(child) => child,
        Err(error) => {
            status_line(&format!("{}: {error}", program.to_string_lossy()));
            return Ok(Some(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }));
        }
    };
    let mut lost = std::pin::pin!(lost);
    loop {
        tokio::select! {
            status = child.wait() => return Ok(Some(code(status?))),
            signal = signals.next() => {
                if !is_from_terminal(signal) {
                    send(&child, signal, is_group);
                }
            }
            reason = &mut lost => {
                status_line(&reason.to_string());
                send(&child, Signal::TERM, is_group);
                if tokio::time::timeout(grace, child.wait()).await.is_err() {
                    send(&child, Signal::KILL, is_group);
                    child.wait().await?;
                }
                return Ok(None);
            }
        }
    }
}

/// Sends a signal to the program, or to its process group.
fn send(child: &Child, signal: Signal, is_group: bool) {
    let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
    // It may have ended just now.
    let _ = if is_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
}

fn terminal() -> Option<File> {
    File::open("/dev/tty").ok()
}

/// Whether the terminal has sent this signal, as it seems: then the program in the same group has it already.
fn is_from_terminal(signal: Signal) -> bool {
    let is_of_terminals = [Signal::INT, Signal::QUIT, Signal::HUP].contains(&signal);
    is_of_terminals && terminal().and_then(|tty| tcgetpgrp(tty).ok()) == Some(getpgrp())
}

/// As a shell has it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The signals that this process ignores since its start, as after `nohup`: signal N is bit N - 1. None where that is not known.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// Signals that are passed on to the program.
struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(8);
        let ignored = ignored();
        for (kind, passed) in [
            (SignalKind::terminate(), Signal::TERM),
            (SignalKind::interrupt(), Signal::INT),
            (SignalKind::hangup(), Signal::HUP),
            (SignalKind::quit(), Signal::QUIT),
            (SignalKind::user_defined1(), Signal::USR1),
            (SignalKind::user_defined2(), Signal::USR2),
        ] {
            if ignored & (1 << (passed.as_raw() - 1)) != 0 {
                continue;
            }
            let (mut signals, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    let _ = sender.send(passed).await;
                }
            });
        }
        Ok(Self(receiver))
    }

    async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// Waits for something, which a signal ends.
    async fn or<T>(&mut self, waiting: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            done = waiting => Ok(done),
            signal = self.next() => Err(Failure::Signal(u8::try_from(signal.as_raw()).unwrap_or_default())),
        }
    }
}
