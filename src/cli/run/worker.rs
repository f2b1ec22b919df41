//! `locktop worker`: runs scheduled tasks and items of the work queue until it is told to end.

use std::io::Read;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::super::args::{Only, WorkerArgs};
use super::super::session;
use super::super::settings::Settings;
use super::{Failure, say};
use crate::locks::work_session::OpenError;
use crate::pg::conninfo::ConnInfo;
use crate::worker::{self, Builtin, Options, Report, Source, WorkerError};

pub(super) async fn run(settings: Settings, arguments: &WorkerArgs) -> Result<u8, Failure> {
    let info =
        settings.conninfo.clone().ok_or_else(|| Failure::Other("no server to connect to".to_owned()))?;
    let mut info =
        session::ask_first(info, settings.prompt).map_err(|error| Failure::Other(error.to_string()))?;
    let (quit, told) = watch::channel(false);
    let mut ends = ends(quit, arguments.exit_with_stdin)?;
    loop {
        let options =
            Options { trusted_owners: settings.trusted_owners.clone(), ..options(info.clone(), arguments) };
        let work = Builtin::new(info.clone(), &arguments.id);
        let outcome = tokio::select! {
            outcome = worker::run(options, work, told.clone()) => outcome,
            // What runs is left as it is: the end of the process ends its sessions, and so gives back its locks.
            end = &mut ends => {
                let end = end.unwrap_or("a signal handler ended");
                return Err(Failure::Other(format!("ended at once by {end}")));
            }
        };
        match outcome {
            Ok(_) => return Ok(0),
            Err(WorkerError::Open(OpenError::Connect(refused))) => {
                let asked = session::ask_after(&info, settings.prompt, &refused);
                match asked.map_err(|error| Failure::Other(error.to_string()))? {
                    Some(asked) => info = asked,
                    None => return Err(Failure::Other(refused.to_string())),
                }
            }
            Err(error) => return Err(Failure::Other(error.to_string())),
        }
    }
}

fn options(info: ConnInfo, arguments: &WorkerArgs) -> Options {
    let usual = Options::new(info, arguments.id.clone());
    let id = arguments.id.clone();
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
        // Whoever ends with its starter has nobody left who would wait for it.
        grace: arguments.grace.unwrap_or(if arguments.exit_with_stdin {
            Duration::ZERO
        } else {
            usual.grace
        }),
        report: Report::to(move |event| say(&format!("worker {id}: {event}"))),
        ..usual
    }
}

/// Listens for the end. The first signal asks for it; the second is answered, with what it was.
fn ends(quit: watch::Sender<bool>, with_stdin: bool) -> Result<oneshot::Receiver<&'static str>, Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (at_once, answer) = oneshot::channel();
    let (over, mut stdin) = watch::channel(false);
    if with_stdin {
        // A thread of its own, which the end of the program does not wait for.
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
