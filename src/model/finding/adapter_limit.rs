//! Job systems of others: jobs whose run time is close to their system's limit. At the limit the job is given to a worker
//! again, even if the first one still works.

use super::adapter::{job_name, name};
use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::adapter::{InstallationRows, JobRow, Part, Proof, State};
use crate::text;

/// A job is close to its limit from this share of it on.
const CLOSE: f64 = 0.8;

pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let installations = look.snapshot.adapters.iter().enumerate();
    installations.filter_map(|(place, rows)| close(look, place, rows)).collect()
}

/// `pg-boss: job mail has run for 12m40s of 15m00s`
fn close(look: &CheckInput<'_>, place: usize, rows: &InstallationRows) -> Option<Finding> {
    let its = look.adapters.rows.iter().filter(|row| row.place == place && row.part == Part::Running);
    let mut all: Vec<(&JobRow, f64, f64)> = its.filter_map(|row| run(rows, row)).collect();
    all.sort_by(|(_, ran, limit), (_, other, its_limit)| (other / its_limit).total_cmp(&(ran / limit)));
    let (first, ran, limit) = *all.first()?;
    let (source, job) = (name(rows), job_name(first));
    let time = format!("{} of {}", text::duration(ran), text::duration(limit));
    let summary = match all.len() {
        1 => format!("{source}: job {job} has run for {time}"),
        many => {
            let many = text::count(many as u64);
            format!("{source}: {many} jobs have used 80 % of their time limit or more, {job} for {time}")
        }
    };
    let adapter = &rows.installation.adapter;
    let then = adapter.comes_back(Proof::Lease).or_else(|| adapter.comes_back(Proof::Age));
    let about = then.map(|then| format!("then: {then}")).unwrap_or_default();
    let finding = Finding::new("adapter_limit", Severity::Warning, summary, Subject::Job(first.id));
    Some(Finding { since: first.job.started_at, ..finding.about(about) })
}

/// A running job that is close to its limit, its run time when it was read, and its limit, in seconds.
fn run<'a>(rows: &InstallationRows, row: &'a JobRow) -> Option<(&'a JobRow, f64, f64)> {
    let adapter = &rows.installation.adapter;
    let of_all = || adapter.evidence.age_limit.as_ref().and_then(|limit| adapter.seconds(limit));
    let limit = row.job.limit.or_else(of_all)?;
    let read_at = rows.jobs.get(&Part::Running)?.section.taken_at?;
    let ran = (read_at - row.job.started_at?).as_seconds_f64();
    let is_close = matches!(row.judged.state, State::Running | State::Unknown) && ran >= CLOSE * limit;
    is_close.then_some((row, ran, limit))
}
