use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::super::recording::{Amount, RecordArgs};
use super::super::settings::CliSettings;
use super::snapshot::Polling;
use super::{Failure, configured, dashboard, status_line};
use crate::clock;
use crate::feed::learn::Learned;
use crate::feed::record::names::HIDDEN;
use crate::feed::record::redact::Redaction;
use crate::feed::record::{self, Destination, Options, Rotation};
use crate::model::disclosure::Mode;
use crate::model::view::{ConnectionState, View};
use crate::recording::container::RecordingInfo;
use crate::runtime::signals::ending;

pub(super) async fn run(mut settings: CliSettings, wanted: &RecordArgs) -> Result<u8, Failure> {
    let info = super::info(&settings)?;
    let mut target = settings.target.clone().unwrap_or_else(|| info.target());
    let name = target.clone();
    if wanted.redact == Some(Mode::Names) {
        names_of_its_own(&wanted.place)?;
        // Hide the target in the header and in the file name, and the expected blockers.
        HIDDEN.clone_into(&mut target);
        settings.config.thresholds.expected.clear();
    }
    let interval = wanted.refresh.unwrap_or(settings.refresh);
    let place = place(&wanted.place, &target);
    let is_folder = matches!(place, Destination::Folder(..));
    if !is_folder && (wanted.rotate.is_some() || !wanted.keep.is_empty()) {
        return Err(Failure::Usage("--rotate and --keep need a directory".to_owned()));
    }
    let usual = if is_folder { Redaction::Literals } else { Redaction::None };
    let redaction = wanted.redact.map(Redaction::of).transpose()?.unwrap_or(usual);
    let about = RecordingInfo {
        created: Some(clock::wall()),
        refresh: interval.as_secs_f64(),
        redaction: redaction.as_str().to_owned(),
        ..dashboard::about(&settings, &target)
    };
    let options =
        Options { place, sync: wanted.sync, rotation: rotation(wanted), about, on_trouble: wanted.around() };
    // Before connecting, since it can fail.
    let (history_sender, writing) = record::start(options, Box::new(status_line))?;
    let (names_in, names) = watch::channel(Learned::default());
    let (mut live, info) = match dashboard::connect(&settings, info, names, Some(redaction)).await {
        Ok(connected) => connected,
        Err(failure) => {
            // Without snapshots the writer leaves the file unchanged.
            drop(history_sender);
            let _ = tokio::task::spawn_blocking(move || writing.join()).await;
            return Err(failure);
        }
    };
    live.send_history_to(history_sender);
    let file = file_for_a_person(&wanted.place);
    if let Some(file) = file {
        let every = crate::text::duration(interval.as_secs_f64());
        status_line(&format!("recording {} every {every} to {}; Ctrl-C ends it", name, file.display()));
    }
    let polling = Polling::start(live, configured::learner(&settings, &info), interval, names_in);
    let mut views = polling.views.clone();
    let ending = ending()?;
    let ended = tokio::select! {
        () = report_connection(&mut views) => Ok(0),
        () = until_finished(&writing) => Ok(0),
        () = over(wanted.for_time) => Ok(0),
        // The recording is complete.
        _ = ending => Ok(0),
    };
    let is_empty = polling.end().await.snapshot.is_none() && matches!(ended, Ok(0));
    let end = tokio::task::spawn_blocking(move || writing.join()).await;
    match end {
        Ok(Ok(Ok(()))) if is_empty => {
            Err(Failure::Other("no snapshot was taken: nothing was recorded".to_owned()))
        }
        Ok(Ok(Ok(()))) => {
            if let Some(file) = file.filter(|file| file.exists()) {
                status_line(&format!("recorded; locktop replay {} shows it", file.display()));
            }
            ended
        }
        // The reader of the output has closed the pipe.
        Ok(Ok(Err(error))) => Err(Failure::Io(error)),
        _ => Err(Failure::Other("the writer ended unexpectedly".to_owned())),
    }
}

/// The path to report to a user at a terminal; not for the log of a service.
fn file_for_a_person(place: &Path) -> Option<&Path> {
    (std::io::stderr().is_terminal() && place != Path::new("-")).then_some(place)
}

/// Hashes of two recorders differ, so an existing recording cannot be continued.
fn names_of_its_own(path: &Path) -> Result<(), Failure> {
    let has_looks = path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
    if has_looks {
        let why = "with --redact names a recording needs a new file: this one exists";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(())
}

/// The place to record to. A directory, or a path that ends with `/`, gets a file per period.
fn place(path: &Path, target: &str) -> Destination {
    if path == Path::new("-") {
        return Destination::Output;
    }
    if path.is_dir() || path.to_string_lossy().ends_with('/') {
        let safe = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let name: String = target.chars().map(safe).collect();
        return Destination::Folder(path.to_owned(), name.trim_matches('-').chars().take(60).collect());
    }
    Destination::File(path.to_owned())
}

fn rotation(wanted: &RecordArgs) -> Rotation {
    let mut rotation = Rotation::default();
    match wanted.rotate {
        Some(Amount::Time(age)) => rotation.age = Some(age),
        Some(Amount::Size(size)) => rotation.size = Some(size),
        None => {}
    }
    for keep in &wanted.keep {
        match *keep {
            Amount::Time(age) => rotation.keep_age = Some(age),
            Amount::Size(size) => rotation.keep_size = Some(size),
        }
    }
    rotation
}

/// Reports lost and restored connections. Returns when the poll has ended.
async fn report_connection(views: &mut watch::Receiver<Arc<View>>) {
    let mut is_down = false;
    while views.changed().await.is_ok() {
        match &views.borrow_and_update().link {
            ConnectionState::Down { reason, .. } if !is_down => {
                is_down = true;
                status_line(&format!("{reason}; connecting again"));
            }
            ConnectionState::Live if is_down => {
                is_down = false;
                status_line("connected again");
            }
            _ => {}
        }
    }
}

/// Returns when the writer has ended, for example because its reader closed the pipe.
async fn until_finished(writing: &std::thread::JoinHandle<std::io::Result<()>>) {
    while !writing.is_finished() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn over(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
