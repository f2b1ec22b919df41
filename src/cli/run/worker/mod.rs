mod systemd;

use std::io::{self, Read, Write};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use self::systemd::Systemd;
use super::super::args::{LogFormat, Only, WorkerArgs};
use super::super::session;
use super::super::settings::Settings;
use super::Failure;
use crate::clock;
use crate::locks::work_session::OpenError;
use crate::worker::{
    self, Builtin, Event, Format, HTTP_REMOVED, Level, Options, Report, Source, Types, WorkerError, WorkerId,
};
use pg_connect::conninfo::ConnInfo;

pub(super) async fn run(settings: Settings, arguments: &WorkerArgs) -> Result<u8, Failure> {
    if arguments.allow_http {
        return Err(Failure::Usage(format!("--allow-http: {HTTP_REMOVED}")));
    }
    let info =
        settings.conninfo.clone().ok_or_else(|| Failure::Other("no server to connect to".to_owned()))?;
    let mut info =
        session::ask_first(info, settings.prompt).map_err(|error| Failure::Other(error.to_string()))?;
    let log = Log::new(arguments, Systemd::of(|name| std::env::var(name).ok()));
    let (quit, told) = watch::channel(false);
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
        let working = beating(&log.systemd, worker::run(options, work, told.clone()));
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
                let asked = session::ask_after(&info, settings.prompt, &refused);
                match asked.map_err(|error| Failure::Other(error.to_string()))? {
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
            _ = beats.tick() => systemd.say("WATCHDOG=1"),
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
struct Log {
    format: Format,
    least: Level,
    worker: WorkerId,
    systemd: Systemd,
}

impl Log {
    fn new(arguments: &WorkerArgs, systemd: Systemd) -> Self {
        let format = match arguments.log_format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        };
        let least = if arguments.quiet { Level::Warn } else { Level::Info };
        Self { format, least, worker: arguments.id.clone(), systemd }
    }

    fn report(&self) -> Report {
        let log = self.clone();
        Report::to(move |event| log.tell(event))
    }

    fn tell(&self, event: &Event) {
        match event {
            Event::Connected { pid, .. } => {
                self.systemd.say(&format!("READY=1\nSTATUS=connected, served by process {pid}"));
            }
            Event::Lost { .. } => self.systemd.say("STATUS=connection lost, connecting again"),
            Event::ShuttingDown { running } => {
                self.systemd.say(&format!("STOPPING=1\nSTATUS=shutting down, {running} running"));
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
        self.tell(&Event::GaveUp(reason.to_owned()));
        Ok(1)
    }
}

fn options(info: ConnInfo, arguments: &WorkerArgs) -> Options {
    let usual = Options::new(info, arguments.id.clone());
    Options {
        schema: arguments.schema.clone(),
        sources: match arguments.only {
            None => usual.sources,
            Some(Only::Tasks) => vec![Source::Tasks],
            Some(Only::Queue) => vec![Source::Queue],
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_it_knows_and_may_do_can_be_asked_for() {
        let known = Types::only(["sleep", "sql"]);
        let asked = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            types(&names, &known).map_err(|error| error.to_string())
        };
        assert_eq!(asked(&[]), Ok(known.clone()));
        assert_eq!(asked(&["sql"]), Ok(Types::only(["sql"])));
        assert!(
            asked(&["sql", "mail"]).unwrap_err().ends_with("type \"mail\" here: this worker runs sleep, sql")
        );
        assert!(asked(&["command"]).unwrap_err().ends_with("it needs --allow-commands"));
        assert!(asked(&["http"]).unwrap_err().ends_with(HTTP_REMOVED));
    }
}
