use std::io::{self, Write};

use locktop_base::file::{self, How};

use super::super::recording::{Redact, ReportArgs, ReportFormat};
use super::Failure;
use super::replay::{open, range, zone};
use crate::app::print::tree;
use crate::feed::record::redact::Redaction;
use crate::feed::replay::Recording;
use crate::feed::report;
use crate::model::zone::Zone;
use crate::wire::report::{Style, html, json, markdown};

pub(super) fn run(wanted: &ReportArgs) -> Result<u8, Failure> {
    // Check early that the output file does not exist. It is created at the end, and only if it still does not exist.
    wanted.output.as_deref().map_or(Ok(()), file::is_free)?;
    let mut recording = open(&wanted.place, true)?;
    let zone = zone(wanted.zone);
    let places = places(&mut recording, wanted, zone)?;
    if places.is_empty() {
        return Err(Failure::Other("no snapshot between these times".to_owned()));
    }
    let redaction = wanted.redact.map(Redact::redaction).transpose()?;
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
