use chrono::TimeDelta;

use super::adapter_leader::leaderless;
use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::adapter::{Choice, InstallationRows, JobRow, Part, QueueRow, QueueState, State, TermState};
use crate::model::observed::Observed;
use crate::model::{Text, adapter};
use crate::text;

/// One finding for each installation that has lost jobs, for each that is not served or is behind, for each that is not
/// read or not complete, and for each lease that is held for long and never expires.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let installations = look.snapshot.adapters.iter();
    let each = installations.enumerate().flat_map(|(place, rows)| {
        let lost: Vec<&JobRow> = look
            .adapters
            .rows
            .iter()
            .filter(|row| row.place == place && row.judged.state.is_lost())
            .collect();
        let queues = look.adapters.queues.iter().filter(|row| row.place == place);
        [
            lost_jobs(look, place, rows, &lost),
            unserved(look, rows, queues.clone()),
            overdue(look, rows, queues),
            zone(rows),
            refused(rows),
            parts(rows),
            stale(rows),
        ]
    });
    each.flatten().chain(endless(look)).collect()
}

/// `Solid Queue: 3 jobs are lost, including InvoiceJob (lost by heartbeat)`
fn lost_jobs(
    look: &CheckInput<'_>,
    place: usize,
    rows: &InstallationRows,
    lost: &[&JobRow],
) -> Option<Finding> {
    let first = lost.first()?;
    let source = name(rows);
    let job = job_name(first);
    let (state, proof) = (first.judged.state.as_str(), first.judged.proof.as_str());
    let what = match lost.len() {
        1 => format!("{source}: job {job} is {state} ({proof})"),
        many => format!(
            "{source}: {} jobs are lost, including {job} ({state} by {proof})",
            text::count(many as u64)
        ),
    };
    let back = first.comes_back.as_ref().map(|back| format!("recovery: {back}"));
    let is_late = lost.iter().any(|row| row.judged.state == State::Late);
    let leaderless = is_late.then(|| leaderless(look, place, rows)).flatten();
    let connected = adapter::connected(first.sessions, rows.sessions);
    let back = leaderless.into_iter().chain(connected).chain(back).collect::<Vec<_>>().join("; ");
    let finding = Finding::new("adapter_job", Severity::Warning, &what, Subject::Job(first.id)).about(back);
    let since = lost.iter().filter_map(|row| row.judged.since).min();
    Some(Finding { since, ..finding })
}

/// `Solid Queue: 1,204 jobs are due, the oldest for 12m4s, and …`, followed by the state of the workers.
fn unserved<'a>(
    look: &CheckInput<'_>,
    rows: &InstallationRows,
    queues: impl Iterator<Item = &'a QueueRow>,
) -> Option<Finding> {
    let (now, overdue) = (look.snapshot.taken_at, look.thresholds.task_overdue);
    let age = |row: &QueueRow| row.oldest_at.map(|oldest| (now - oldest).as_seconds_f64());
    let unserved: Vec<&QueueRow> = queues.filter(|row| row.state == QueueState::Unserved).collect();
    let worst = unserved.iter().filter(|row| age(row).is_some_and(|age| age > overdue));
    let worst = worst.min_by_key(|row| row.oldest_at)?;
    let oldest = text::duration(age(worst).unwrap_or_default());
    let who = match rows.workers.section.observed().map(<[_]>::len) {
        Observed::Read(1) => "its worker has disconnected".to_owned(),
        Observed::Read(many) if many > 1 => format!("none of its {many} workers is alive"),
        _ if rows.sessions == Some(0) => "no session of a worker is connected".to_owned(),
        Observed::Read(_) => "no worker is listed".to_owned(),
        _ => return None,
    };
    let what = format!("{}, and {who}", due(rows, &unserved, &oldest));
    Some(of_queue("adapter_queue", worst, &what))
}

/// `GoodJob: 30 jobs are due, the oldest for 32m05s`: the system is behind, even if nothing shows that no worker serves it.
fn overdue<'a>(
    look: &CheckInput<'_>,
    rows: &InstallationRows,
    queues: impl Iterator<Item = &'a QueueRow>,
) -> Option<Finding> {
    let limit = look.thresholds.queue_pending;
    let is_late = |row: &&QueueRow| row.state == QueueState::Overdue && look.is_older(row.oldest_at, limit);
    let late: Vec<&QueueRow> = queues.filter(is_late).collect();
    let worst = late.iter().min_by_key(|row| row.oldest_at)?;
    let oldest = text::duration(look.age(worst.oldest_at?));
    Some(of_queue("adapter_overdue", worst, &due(rows, &late, &oldest)))
}

/// `Solid Queue: 1,204 jobs are due, the oldest for 12m4s`
fn due(rows: &InstallationRows, queues: &[&QueueRow], oldest: &str) -> String {
    let due: Vec<_> = queues.iter().filter_map(|row| row.counts.get("due")).collect();
    let more = if due.iter().any(|count| count.is_least) { "+" } else { "" };
    let source = name(rows);
    match due.iter().map(|count| count.number).sum() {
        1 if more.is_empty() => format!("{source}: 1 job is due, for {oldest}"),
        many => {
            let many: String = text::count(many);
            format!("{source}: {many}{more} jobs are due, the oldest for {oldest}")
        }
    }
}

fn of_queue(check: &'static str, worst: &QueueRow, what: &str) -> Finding {
    let queue = worst.queue.as_deref().map(|queue| format!("queue {}", text::one_line_prefix(queue, 60)));
    let finding = Finding::new(check, Severity::Warning, what, Subject::JobQueue(worst.id));
    Finding { since: worst.oldest_at, ..finding.about(queue.unwrap_or_default()) }
}

/// `Liquibase: lease changelog 1 is held by ci-runner-5 for 3h00m, and never expires`
fn endless(look: &CheckInput<'_>) -> Vec<Finding> {
    let held = look.adapters.leases.iter().filter(|row| row.state == TermState::Held && row.left.is_none());
    let found = held.filter_map(|row| {
        let (place, at) = row.place;
        let Observed::Read(leases) = look.snapshot.adapters.get(place)?.leases.section.observed() else {
            return None;
        };
        let lease = leases.get(at)?;
        let since = lease.acquired_at.filter(|at| look.age(*at) >= look.thresholds.task_timeout)?;
        let short = |words: &str| text::fit(&text::one_line_prefix(words, 80), 40).into_owned();
        let (source, id) = (short(&row.source), short(&lease.id));
        let owner = short(lease.owner.as_deref().unwrap_or("an unknown holder"));
        let age = text::duration(look.age(since));
        let summary = format!("{source}: lease {id} is held by {owner} for {age}, and never expires");
        let finding = Finding::new("adapter_lease", Severity::Warning, summary, Subject::JobLease(row.id));
        let finding = finding.short(format!("{source}: {id} held {age} by {owner}"));
        Some(Finding { since: Some(since), ..finding.about(lease.note.as_deref().unwrap_or_default()) })
    });
    found.take(LIMIT).collect()
}

/// The heartbeats of its workers are late, or in the future, by whole half hours.
fn zone(rows: &InstallationRows) -> Option<Finding> {
    let offset = adapter::offset(rows)?;
    let (many, name) = (text::duration(offset.abs().as_seconds_f64()), name(rows));
    let lies = if offset < TimeDelta::zero() { "ahead" } else { "back" };
    let short = format!("{name}: its workers may write times in another time zone");
    let about = format!(
        "the last heartbeat of each is {many} {lies}, to the minute; set time_zone in [adapters.{}] of the config to their zone",
        rows.installation.adapter.name
    );
    Some(Finding::new("adapter", Severity::Info, &*short, Subject::Section("adapters")).about(about))
}

fn refused(rows: &InstallationRows) -> Option<Finding> {
    let reason = rows.installation.refused.as_ref()?;
    let short = if rows.installation.is_somewhere() {
        format!("{} exists, but is not read", name(rows))
    } else {
        format!("{}: not all of its tables were searched", name(rows))
    };
    let summary = format!("{short}: {reason}");
    Some(Finding::new("adapter", Severity::Info, summary, Subject::Section("adapters")).short(short))
}

/// Parts for which no query may be used.
fn parts(rows: &InstallationRows) -> Option<Finding> {
    let is_unread = |choice: &&Choice| choice.used().is_none();
    let unread: Vec<&Choice> = rows.installation.choices.iter().filter(is_unread).collect();
    let names: Vec<&str> = unread.iter().map(|choice| choice.part.as_str()).collect();
    let reason = unread.first()?.tried.last()?.outcome.as_ref().err()?;
    let summary = format!("{}: {} cannot be read: {reason}", name(rows), names.join(", "));
    let short = format!("{}: {} cannot be read", name(rows), names.join(", "));
    Some(Finding::new("adapter", Severity::Info, summary, Subject::Section("adapters")).short(short))
}

/// Parts whose last reading failed, such as one that timed out so often that it is no longer read.
fn stale(rows: &InstallationRows) -> Option<Finding> {
    let others = [
        (Part::Workers, &rows.workers.section.error),
        (Part::Depth, &rows.depth.section.error),
        (Part::Paused, &rows.paused.section.error),
        (Part::Leases, &rows.leases.section.error),
        (Part::Schedules, &rows.schedules.section.error),
    ];
    let jobs = rows.jobs.iter().map(|(part, read)| (*part, &read.section.error));
    let errors: Vec<(Part, &Text)> =
        jobs.chain(others).filter_map(|(part, error)| Some((part, error.as_ref()?))).collect();
    let (_, reason) = errors.first()?;
    let names: Vec<&str> = errors.iter().map(|(part, _)| part.as_str()).collect();
    let summary = format!("{}: {} could not be read: {reason}", name(rows), names.join(", "));
    let short = format!("{}: {} could not be read", name(rows), names.join(", "));
    Some(Finding::new("adapter", Severity::Warning, summary, Subject::Section("adapters")).short(short))
}

pub(super) fn job_name(row: &JobRow) -> String {
    let name = row.job.name.as_deref().unwrap_or(&row.job.id);
    text::fit(&text::one_line_prefix(name, 60), 60).into_owned()
}

pub(super) fn name(rows: &InstallationRows) -> String {
    text::fit(&text::one_line_prefix(&rows.installation.label(), 40), 40).into_owned()
}
