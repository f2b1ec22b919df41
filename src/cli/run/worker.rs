use std::io::{self, Read, Write};
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::super::password;
use super::super::schema::WorkerArgs;
use super::super::settings::CliSettings;
use super::{Failure, env};
use crate::clock;
use crate::locks::work_session::OpenError;
use crate::worker::{
    self, Builtin, Event, Format, HTTP_REMOVED, Level, Options, Report, Types, WorkerError, WorkerId,
};
use pg_connect::conninfo::ConnInfo;

pub(super) async fn run(settings: CliSettings, arguments: &WorkerArgs) -> Result<u8, Failure> {
    if arguments.allow_http {
        return Err(Failure::Usage(format!("--allow-http: {HTTP_REMOVED}")));
    }
    let mut info = super::info(&settings)?;
    let log = WorkerLog {
        format: arguments.log_format,
        least: if arguments.quiet { Level::Warn } else { Level::Info },
        worker: arguments.id.clone(),
        systemd: Systemd::of(env),
    };
    let (quit, quitting) = watch::channel(false);
    let mut ends = ends(quit, arguments.exit_with_stdin)?;
    loop {
        let work = Builtin::new(info.clone(), &arguments.id)
            .with_commands(arguments.allow_commands)
            .with_report(log.report());
        let options = Options {
            trusted_owners: settings.trusted_owners.clone(),
            types: types(&arguments.types, &work.types())?,
            report: log.report(),
            ..options(info.clone(), arguments)
        };
        let working = beating(&log.systemd, worker::run(options, work, quitting.clone()));
        let outcome = tokio::select! {
            outcome = working => outcome,
            // Running work is left as it is: the exit of the process ends its sessions, which releases their locks.
            end = &mut ends => {
                let end = end.unwrap_or("a signal handler ended");
                return log.fatal(&format!("killed by a second {end}"));
            }
        };
        match outcome {
            Ok(_) => return Ok(0),
            Err(WorkerError::Open(OpenError::Connect(refused))) => {
                match password::ask_after(&info, settings.prompt, &refused)? {
                    Some(asked) => info = asked,
                    None => return log.fatal(&refused.to_string()),
                }
            }
            Err(error) => return log.fatal(&error.to_string()),
        }
    }
}

/// Runs the worker, and notifies the systemd watchdog while it is polled.
async fn beating<T>(systemd: &Systemd, working: impl Future<Output = T>) -> T {
    let mut working = std::pin::pin!(working);
    let Some(pulse) = systemd.pulse() else { return working.await };
    let mut beats = tokio::time::interval(pulse);
    loop {
        tokio::select! {
            outcome = &mut working => return outcome,
            _ = beats.tick() => systemd.notify("WATCHDOG=1"),
        }
    }
}

/// The types to take: the requested ones, or all that this worker knows and may run.
fn types(asked: &[String], known: &Types) -> Result<Types, Failure> {
    if asked.is_empty() {
        return Ok(known.clone());
    }
    let names = known.names().unwrap_or_default();
    match asked.iter().find(|name| !names.contains(name)) {
        None => Ok(Types::only(asked.iter().cloned())),
        Some(name) => {
            let needs = match name.as_str() {
                "command" => "it needs --allow-commands".to_owned(),
                "http" => HTTP_REMOVED.to_owned(),
                _ => format!("this worker runs {}", names.join(", ")),
            };
            Err(Failure::Usage(format!("--types: no work of type \"{name}\" here: {needs}")))
        }
    }
}

#[derive(Debug, Clone)]
struct WorkerLog {
    format: Format,
    least: Level,
    worker: WorkerId,
    systemd: Systemd,
}

impl WorkerLog {
    fn report(&self) -> Report {
        let log = self.clone();
        Report::to(move |event| log.log(event))
    }

    fn log(&self, event: &Event) {
        match event {
            Event::Connected { pid, .. } => {
                self.systemd.notify(&format!("READY=1\nSTATUS=connected, served by process {pid}"));
            }
            Event::Lost { .. } => self.systemd.notify("STATUS=connection lost, connecting again"),
            Event::ShuttingDown { running } => {
                self.systemd.notify(&format!("STOPPING=1\nSTATUS=shutting down, {running} running"));
            }
            _ => {}
        }
        if event.level() >= self.least {
            let line = worker::line(self.format, clock::wall(), &self.worker, event);
            // In one write. If standard error is closed, the line is lost.
            let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }

    /// A fatal error: a log event in JSON format, otherwise an error message as for other commands.
    fn fatal(&self, reason: &str) -> Result<u8, Failure> {
        if self.format == Format::Text {
            return Err(Failure::Other(reason.to_owned()));
        }
        self.log(&Event::GaveUp(reason.to_owned()));
        Ok(1)
    }
}

fn options(info: ConnInfo, arguments: &WorkerArgs) -> Options {
    let usual = Options::new(info, arguments.id.clone());
    Options {
        schema: arguments.schema.clone(),
        sources: arguments.only.map_or(usual.sources, |only| vec![only]),
        concurrency: usize::from(arguments.concurrency),
        observe_locks: arguments.observe_locks,
        heartbeat: arguments.heartbeat.unwrap_or(usual.heartbeat),
        // With --exit-with-stdin, the parent process that could wait has exited.
        grace: arguments.grace.unwrap_or(if arguments.exit_with_stdin {
            Duration::ZERO
        } else {
            usual.grace
        }),
        ..usual
    }
}

/// Handles signals. The first requests the shutdown; the second is returned by name.
fn ends(quit: watch::Sender<bool>, with_stdin: bool) -> Result<oneshot::Receiver<&'static str>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (at_once, answer) = oneshot::channel();
    let (over, mut stdin) = watch::channel(false);
    if with_stdin {
        // A thread, because the exit of the program does not wait for it.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut input = std::io::stdin().lock();
            while input.read(&mut buffer).is_ok_and(|read| read > 0) {}
            over.send_replace(true);
        });
    }
    tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                _ = hangup.recv() => "SIGHUP",
                Ok(_) = stdin.wait_for(|over| *over), if !*quit.borrow() => {
                    quit.send_replace(true);
                    continue;
                }
            };
            if quit.send_replace(true) {
                let _ = at_once.send(name);
                return;
            }
        }
    });
    Ok(answer)
}

#[derive(Debug, Clone, Default)]
pub(super) struct Systemd {
    socket: Option<String>,
    watchdog: Option<Duration>,
}

impl Systemd {
    pub(super) fn of(env: impl Fn(&str) -> Option<String>) -> Self {
        let own = |pid: String| pid.parse() == Ok(std::process::id());
        // If `WATCHDOG_PID` is set, the watchdog is for that process.
        let watchdog = env("WATCHDOG_USEC").filter(|_| env("WATCHDOG_PID").is_none_or(own));
        let watchdog = watchdog.and_then(|micros| micros.parse().ok()).map(Duration::from_micros);
        Self { socket: env("NOTIFY_SOCKET"), watchdog: watchdog.filter(|time| !time.is_zero()) }
    }

    /// The interval for watchdog notifications, if required: half of the watchdog timeout.
    pub(super) fn pulse(&self) -> Option<Duration> {
        self.socket.as_ref().and(self.watchdog).map(|time| time / 2)
    }

    /// Sends a notification. Errors are ignored.
    pub(super) fn notify(&self, words: &str) {
        if let Some(name) = &self.socket {
            let _ = send(name, words);
        }
    }
}

fn send(name: &str, words: &str) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // Do not block on a full queue.
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    if let Some(name) = name.strip_prefix('@') {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return socket.send_to_addr(words.as_bytes(), &address).map(drop);
    }
    socket.send_to(words.as_bytes(), name).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_and_permitted_types_can_be_requested() {
        let known = Types::only(["sleep", "sql"]);
        let requested = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            types(&names, &known).map_err(|error| error.to_string())
        };
        assert_eq!(requested(&[]), Ok(known.clone()));
        assert_eq!(requested(&["sql"]), Ok(Types::only(["sql"])));
        assert!(
            requested(&["sql", "mail"])
                .unwrap_err()
                .ends_with("type \"mail\" here: this worker runs sleep, sql")
        );
        assert!(requested(&["command"]).unwrap_err().ends_with("it needs --allow-commands"));
        assert!(requested(&["http"]).unwrap_err().ends_with(HTTP_REMOVED));
    }

    #[test]
    fn systemd_gets_notifications_and_sets_the_watchdog_interval() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let env = |name: &str| match name {
            "NOTIFY_SOCKET" => Some(path.to_str().unwrap().to_owned()),
            "WATCHDOG_USEC" => Some("3000000".to_owned()),
            "WATCHDOG_PID" => Some(std::process::id().to_string()),
            _ => None,
        };
        let systemd = Systemd::of(env);
        assert_eq!(systemd.pulse(), Some(Duration::from_millis(1500)));
        systemd.notify("READY=1");
        let mut message = [0; 64];
        let count = receiver.recv(&mut message).unwrap();
        assert_eq!(&message[..count], b"READY=1");
        // The watchdog of another process, and no watchdog.
        let others = |name: &str| if name == "WATCHDOG_PID" { Some("1".to_owned()) } else { env(name) };
        assert_eq!(Systemd::of(others).pulse(), None);
        assert_eq!(Systemd::of(|_| None).pulse(), None);
        Systemd::of(|_| None).notify("READY=1");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_may_have_no_file() {
        let name = format!("locktop-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let receiver = UnixDatagram::bind_addr(&address).unwrap();
        let place = format!("@{name}");
        Systemd::of(|of| (of == "NOTIFY_SOCKET").then(|| place.clone())).notify("STOPPING=1");
        let mut message = [0; 64];
        let count = receiver.recv(&mut message).unwrap();
        assert_eq!(&message[..count], b"STOPPING=1");
    }
}
