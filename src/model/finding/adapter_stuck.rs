//! Job systems of others: jobs that do not continue, and what waits behind a job whose worker was lost.

use std::collections::BTreeMap;

use super::adapter::{job_name, name};
use super::adapter_leader::leaderless;
use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::Timestamp;
use crate::model::adapter::{InstallationRows, JobRow, Part, Proof, State};
use crate::text;

/// For each installation at most one finding of each kind, and one for each job that keeps others waiting.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let installations = look.snapshot.adapters.iter().enumerate();
    let each = installations.flat_map(|(place, rows)| {
        let its: Vec<&JobRow> = look.adapters.rows.iter().filter(|row| row.place == place).collect();
        let mut found = keys(rows, &its);
        found.extend(stuck(rows, &its));
        found.extend(over(look, rows, &its));
        found.extend(not_made_due(look, place, rows, &its));
        found
    });
    each.collect()
}

/// `Procrastinate: job Mail is lost (heartbeat) and keeps lock orders/7: 3 listed jobs wait for it`
fn keys(rows: &InstallationRows, its: &[&JobRow]) -> Vec<Finding> {
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for row in its.iter().filter(|row| row.part != Part::Running) {
        if let Some(key) = row.job.concurrency_key.as_deref() {
            *waiting.entry(key).or_default() += 1;
        }
    }
    let lost = its.iter().filter(|row| row.part == Part::Running && row.judged.state.is_lost());
    let each = lost.filter_map(|row| {
        let key = row.job.concurrency_key.as_deref()?;
        let what = match waiting.get(key)? {
            1 => "1 listed job waits for it".to_owned(),
            many => format!("{} listed jobs wait for it", text::count(*many as u64)),
        };
        let (state, proof) = (row.judged.state.as_str(), row.judged.proof.as_str());
        let key = text::fit(&text::one_line_prefix(key, 60), 60).into_owned();
        let summary =
            format!("{}: job {} is {state} ({proof}) and keeps {key}: {what}", name(rows), job_name(row));
        let finding = Finding::new("adapter_key", Severity::Warning, &summary, Subject::Job(row.id));
        Some(Finding { since: row.judged.since, ..finding.about(comes_back(row)) })
    });
    each.collect()
}

/// `Quartz: 2 jobs will not continue without help, including Mail`, followed by the reason: `its trigger is ACQUIRED, and
/// …`
fn stuck(rows: &InstallationRows, its: &[&JobRow]) -> Option<Finding> {
    let stuck: Vec<&&JobRow> = its.iter().filter(|row| row.job.stuck.is_some()).collect();
    let first = stuck.first()?;
    let (source, job) = (name(rows), job_name(first));
    let summary = match stuck.len() {
        1 => format!("{source}: job {job} will not continue without help"),
        many => {
            let many = text::count(many as u64);
            format!("{source}: {many} jobs will not continue without help, including {job}")
        }
    };
    let reason = text::one_line_prefix(first.job.stuck.as_deref().unwrap_or_default(), 200);
    let finding = Finding::new("adapter_stuck", Severity::Warning, summary, Subject::Job(first.id));
    let since = stuck.iter().filter_map(|row| row.job.finished_at.or(row.job.due_at)).min();
    Some(Finding { since, ..finding.about(reason) })
}

/// `Solid Queue: 3 jobs are blocked by a limit that expired 12m4s ago, including Mail (orders/7)`
fn over(look: &CheckInput<'_>, rows: &InstallationRows, its: &[&JobRow]) -> Option<Finding> {
    let age = |row: &JobRow| age(look, row.judged.since);
    // Until then its system frees it automatically, so there is nothing to report.
    let limit = |row: &JobRow| row.job.limit.unwrap_or(look.thresholds.task_overdue);
    let is_over = |row: &&&JobRow| {
        row.judged.state == State::Blocked
            && row.judged.proof == Proof::Lease
            && age(row).is_some_and(|age| age > limit(row))
    };
    let all: Vec<&&JobRow> = its.iter().filter(is_over).collect();
    let first = all.iter().min_by_key(|row| row.judged.since)?;
    let (source, job) = (name(rows), job_name(first));
    let ago = text::duration(age(first).unwrap_or_default());
    let key =
        first.job.concurrency_key.as_deref().map(|key| format!(" ({})", text::one_line_prefix(key, 60)));
    let key = key.unwrap_or_default();
    let summary = match all.len() {
        1 => format!("{source}: job {job} is blocked by a limit that expired {ago} ago{key}"),
        many => {
            let many = text::count(many as u64);
            format!(
                "{source}: {many} jobs are blocked by a limit that expired {ago} ago, including {job}{key}"
            )
        }
    };
    let finding = Finding::new("adapter_asleep", Severity::Warning, summary, Subject::Job(first.id));
    Some(Finding { since: first.judged.since, ..finding.about(comes_back(first)) })
}

/// `Solid Queue: 3 scheduled jobs were due up to 12m4s ago, but have not been put into their queues`
fn not_made_due(
    look: &CheckInput<'_>,
    place: usize,
    rows: &InstallationRows,
    its: &[&JobRow],
) -> Option<Finding> {
    // Rows that were read some time ago may have been queued since.
    let read_at = rows.jobs.get(&Part::Scheduled)?.section.taken_at?;
    let late = |row: &JobRow| row.job.due_at.map(|due| (read_at - due).as_seconds_f64());
    let is_late = |row: &&&JobRow| {
        row.part == Part::Scheduled && late(row).is_some_and(|late| late > look.thresholds.task_overdue)
    };
    let all: Vec<&&JobRow> = its.iter().filter(is_late).collect();
    let first = all.iter().min_by_key(|row| row.job.due_at)?;
    let (source, job) = (name(rows), job_name(first));
    let longest = text::duration(late(first).unwrap_or_default());
    let summary = match all.len() {
        1 => format!(
            "{source}: scheduled job {job} was due {longest} ago, but has not been put into its queue"
        ),
        many => {
            let many = text::count(many as u64);
            format!(
                "{source}: {many} scheduled jobs were due up to {longest} ago, but have not been put into their queues"
            )
        }
    };
    let finding = Finding::new("adapter_asleep", Severity::Warning, summary, Subject::Job(first.id));
    let about = leaderless(look, place, rows).unwrap_or_default();
    Some(Finding { since: first.job.due_at, ..finding.about(about) })
}

fn comes_back(row: &JobRow) -> String {
    row.comes_back.as_ref().map(|back| format!("recovery: {back}")).unwrap_or_default()
}

fn age(look: &CheckInput<'_>, since: Option<Timestamp>) -> Option<f64> {
    Some((look.snapshot.taken_at - since?).as_seconds_f64())
}
