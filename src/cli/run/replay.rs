use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locktop_base::file::{self, How};
use tokio::sync::watch;

use super::{Failure, configured, dashboard, status_line};
use crate::app::print::tree;
use crate::app::time;
use crate::cli::recording::{CutArgs, Export, ReplayArgs, ReportArgs, ReportFormat, ThresholdSource};
use crate::cli::settings::CliSettings;
use crate::feed::record::names::HIDDEN;
use crate::feed::record::redact::Redaction;
use crate::feed::record::{Options, Recorder};
use crate::feed::replay::{self, Recording, ReplayError};
use crate::feed::report;
use crate::feed::view_builder::{Recount, ViewBuilder};
use crate::model::lock_name::LockNames;
use crate::model::past::{Observation, TimeStep};
use crate::model::thresholds::Thresholds;
use crate::model::view::{TargetId, View};
use crate::model::zone::Zone;
use crate::output::csv;
use crate::output::report::{Style, html, json, markdown};
use crate::recording::container::RecordingInfo;
use crate::runtime::{self, DashboardSource, signals};

pub(super) async fn run(settings: CliSettings, wanted: &ReplayArgs) -> Result<u8, Failure> {
    if wanted.export.is_none() {
        dashboard::needs_terminal("\"locktop replay FILE --export csv\" prints its snapshots")?;
    }
    let mut recording = open(&wanted.place, wanted.export.is_some())?;
    if wanted.thresholds == Some(ThresholdSource::Config) {
        recording.judge_by(settings.config.thresholds.clone());
    }
    let zone = wanted.zone.unwrap_or(Zone::Local);
    if wanted.export.is_some() {
        return export(&mut recording, wanted, zone);
    }
    if recording.moments().is_empty() && !wanted.follow {
        return Err(Failure::Other(format!(
            "{}: no snapshots: nothing was recorded",
            wanted.place.display()
        )));
    }
    let first = match &wanted.at {
        Some(text) => step(&recording, text, zone)?,
        None if wanted.follow => TimeStep::Time(chrono::DateTime::<chrono::Utc>::MAX_UTC),
        None => TimeStep::Time(chrono::DateTime::<chrono::Utc>::MIN_UTC),
    };
    let begin = recording.moments().first().map(|first| first.at);
    let before = match (&first, begin) {
        (TimeStep::Time(at), Some(begin)) if wanted.at.is_some() && *at < begin => {
            let begin = time::dated(begin, zone, true);
            Some(format!(
                "the recording begins at {begin}, after --at {}",
                wanted.at.as_deref().unwrap_or_default()
            ))
        }
        _ => None,
    };
    let name = match recording.about().map(|about| about.target.clone()).filter(|target| !target.is_empty()) {
        Some(target) => target,
        None => wanted.place.display().to_string(),
    };
    Box::pin(show(&settings, recording, (name, first, zone), before, wanted)).await
}

async fn show(
    settings: &CliSettings,
    recording: Recording,
    (name, first, zone): (String, TimeStep, Zone),
    word: Option<String>,
    wanted: &ReplayArgs,
) -> Result<u8, Failure> {
    signals::end_the_screens();
    let theme = configured::theme(settings);
    let mut app = dashboard::app(settings, name, Some("replay".to_owned()))?;
    app.settings.zone = zone;
    app.replay_at(wanted.speed);
    if let Some(word) = word {
        app.show_until_key(word);
    }
    let history = replay::start(recording, first, wanted.follow, wanted.speed)
        .map_err(|error| Failure::Other(format!("no thread to replay: {error}")))?;
    let empty = ViewBuilder::new(TargetId::default(), Thresholds::default(), LockNames::default()).view();
    let (views_in, views) = watch::channel(empty);
    let source = DashboardSource {
        views,
        asked: Box::new(|_| {}),
        executor: None,
        history: Some(history),
        about: RecordingInfo::default(),
        asking: Box::new(|_| {}),
        leaving: Box::new(|_| {}),
    };
    let exit = Box::pin(runtime::run(app, theme, source)).await;
    // Dropping it earlier would end the screens.
    drop(views_in);
    dashboard::status(exit?)
}

/// Opens a file, a directory or standard input. Standard input is read in the background, or to its end if `whole`.
fn open(path: &Path, whole: bool) -> Result<Recording, Failure> {
    if path != Path::new("-") {
        return Ok(Recording::open(path)?);
    }
    let kept = tempfile::NamedTempFile::new()?;
    let (mut into, file) = (kept.reopen()?, kept.reopen()?);
    let (first, begun) = std::sync::mpsc::channel();
    // The thread is never joined.
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        let mut piece = vec![0; 1 << 16];
        while let Ok(count @ 1..) = io::Read::read(&mut input, &mut piece) {
            if into.write_all(piece.get(..count).unwrap_or_default()).is_err() {
                return;
            }
            let _ = first.send(());
        }
    })?;
    let mut recording = Recording::of(vec![(file, PathBuf::from("standard input"))])?;
    while (whole || recording.moments().is_empty()) && begun.recv().is_ok() {
        recording.check_for_more()?;
    }
    if recording.about().is_none() {
        return Err(ReplayError::Nothing("standard input".to_owned()).into());
    }
    Ok(recording)
}

fn step(recording: &Recording, text: &str, zone: Zone) -> Result<TimeStep, Failure> {
    let moments = recording.moments();
    let ends = moments.first().zip(moments.last()).map(|(first, last)| (first.at, last.at));
    let (first, last) = ends.unwrap_or_default();
    let step = time::in_recording(text, (first, last), zone).map_err(Failure::Usage)?;
    Ok(step.unwrap_or(TimeStep::Time(last)))
}

fn range(
    recording: &Recording,
    (from, to): (Option<&str>, Option<&str>),
    zone: Zone,
) -> Result<std::ops::Range<usize>, Failure> {
    let at = |text: &str| match step(recording, text, zone)? {
        TimeStep::Time(time) => Ok(time),
        _ => {
            Err(Failure::Usage(format!("\"{text}\" is not a time: expected 14:02, 2026-11-04 14:02 or -10m")))
        }
    };
    let moments = recording.moments();
    let first = match from.map(at).transpose()? {
        Some(from) => moments.partition_point(|moment| moment.at < from),
        None => 0,
    };
    let end = match to.map(at).transpose()? {
        Some(to) => moments.partition_point(|moment| moment.at <= to),
        None => moments.len(),
    };
    Ok(first..end.max(first))
}

/// Prints a line per snapshot. Damaged snapshots are skipped and counted.
fn export(recording: &mut Recording, wanted: &ReplayArgs, zone: Zone) -> Result<u8, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut seq, mut damaged) = (0, 0);
    let is_table = wanted.export == Some(Export::Csv);
    if is_table {
        write!(out, "{}\r\n", csv::HEAD)?;
    }
    for place in range(recording, (wanted.from.as_deref(), wanted.to.as_deref()), zone)? {
        let Ok(view) = recording.view(place) else {
            damaged += 1;
            continue;
        };
        seq += 1;
        if is_table {
            if let Some(text) = csv::snapshot(&view) {
                write!(out, "{text}\r\n")?;
            }
        } else if let Some(text) = crate::output::json::snapshot_line(&view, seq, 0) {
            writeln!(out, "{}", text?)?;
        }
    }
    out.flush()?;
    report_damaged(damaged);
    Ok(0)
}

fn report_damaged(damaged: u64) {
    if damaged > 0 {
        status_line(&format!("{damaged} damaged snapshots skipped"));
    }
}

pub(super) fn cut(wanted: &CutArgs) -> Result<u8, Failure> {
    let mut recording = Recording::open(&wanted.place)?;
    let zone = wanted.zone.unwrap_or(Zone::Local);
    let places = range(&recording, (wanted.from.as_deref(), wanted.to.as_deref()), zone)?;
    if places.is_empty() {
        return Err(Failure::Other("no snapshot between these times".to_owned()));
    }
    let redaction = wanted.redact.map(Redaction::of).transpose()?;
    let mut about = recording.about().cloned().unwrap_or_default();
    if let Some(redaction) = redaction {
        redaction.as_str().clone_into(&mut about.redaction);
        if redaction.hides_names() {
            HIDDEN.clone_into(&mut about.target);
            about.thresholds.expected.clear();
        }
    }
    let mut recorder = Recorder::open(Options::new_file(&wanted.output, about))?;
    let mut recount = Recount::new(recording.refresh());
    let wanted = places.len() as u64;
    for place in places {
        let Ok(mut kept) = recording.read(place) else { continue };
        if let Some(redaction) = redaction {
            redaction.apply_to_recorded(&mut kept);
        }
        let is_counted = kept.blame.is_some();
        let (past, notes) = (Arc::new(kept.past.clone()), Arc::clone(&kept.notes));
        let mut view: Arc<View> = ViewBuilder::view_of(kept, TargetId::default(), &recording.thresholds());
        if !is_counted {
            let blame = recount.count(&view);
            view = Arc::new(View { blame, ..View::clone(&view) });
        }
        recorder.write(&Observation { view, past, notes })?;
    }
    let (written, losses) = (recorder.snapshots(), recorder.losses());
    recorder.end()?;
    if let Some(losses) = losses {
        status_line(&losses);
    }
    if written == 0 {
        return Err(Failure::Other(format!("nothing was written: all {wanted} snapshots are damaged")));
    }
    report_damaged(wanted.saturating_sub(written));
    Ok(0)
}

pub(super) fn report(wanted: &ReportArgs) -> Result<u8, Failure> {
    // Check early that the output file does not exist. It is created at the end, and only if it still does not exist.
    wanted.output.as_deref().map_or(Ok(()), file::is_free)?;
    let mut recording = open(&wanted.place, true)?;
    let zone = wanted.zone.unwrap_or(Zone::Local);
    let places = places(&mut recording, wanted, zone)?;
    if places.is_empty() {
        return Err(Failure::Other("no snapshot between these times".to_owned()));
    }
    let redaction = wanted.redact.map(Redaction::of).transpose()?;
    if redaction.is_some_and(Redaction::hides_names) {
        let help = "cut FILE --redact names -o OTHER, then report OTHER";
        return Err(Failure::Other(format!("a report cannot be redacted by name: first locktop {help}")));
    }
    let mut report = report::of(&mut recording, places.clone(), redaction, tree)?;
    if !wanted.log.is_empty() {
        if report.redaction == "names" {
            let why = "names were removed from this recording, but the log contains them";
            return Err(Failure::Usage(format!("--log: {why}")));
        }
        report::add_log(&mut report, &mut recording, places, &wanted.log, redaction)
            .map_err(Failure::Other)?;
    }
    let style = Style { top: wanted.top.into(), zone };
    let text = match wanted.format() {
        ReportFormat::Html => html(&report, style),
        ReportFormat::Md => markdown(&report, style),
        ReportFormat::Json => json(&report)? + "\n",
    };
    match &wanted.output {
        None => io::stdout().lock().write_all(text.as_bytes())?,
        Some(path) => {
            let written = file::open(path, How::Create)?.write_all(text.as_bytes());
            written.map_err(|error| Failure::Other(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(0)
}

fn places(
    recording: &mut Recording,
    wanted: &ReportArgs,
    zone: Zone,
) -> Result<std::ops::Range<usize>, Failure> {
    if let Some(number) = wanted.episode {
        let found = report::of_episode(recording, number)?;
        return found.ok_or_else(|| Failure::Other(format!("no episode {number}")));
    }
    if let Some(last) = wanted.last {
        let moments = recording.moments();
        let end = moments.last().map(|moment| moment.at);
        let from = end.zip(chrono::TimeDelta::from_std(last).ok());
        let from = from.and_then(|(end, last)| end.checked_sub_signed(last));
        let first = from.map_or(0, |from| moments.partition_point(|moment| moment.at < from));
        return Ok(first..moments.len());
    }
    range(recording, (wanted.from.as_deref(), wanted.to.as_deref()), zone)
}
