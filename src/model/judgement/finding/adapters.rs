//! Job systems of others.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject, short};
use crate::model::adapter::{
    InstallationRows, JobRow, JobState, Part, Proof, QueryChoice, QueueRow, QueueState, ScheduleState,
};
use crate::model::lease::LeaseState;
use crate::model::section::Observed;
use crate::model::{Text, adapter};
use crate::order::SortExt;
use crate::text;

/// One finding for each installation that has lost jobs, for each that is not served or is behind, for each that is not
/// read or not complete, and for each lease that is held for long and never expires.
pub(super) fn adapters(input: &CheckInput<'_>) -> Vec<Finding> {
    let installations = input.snapshot.adapters.iter();
    let each = installations.enumerate().flat_map(|(place, rows)| {
        let lost: Vec<&JobRow> = input
            .adapters
            .rows
            .iter()
            .filter(|row| row.place == place && row.judged.state.is_lost())
            .collect();
        let queues = input.adapters.queues.iter().filter(|row| row.place == place);
        [
            lost_jobs(input, place, rows, &lost),
            unserved_queue(input, rows, queues.clone()),
            overdue_queue(input, rows, queues),
            other_zone(rows),
            refused_tables(rows),
            unread_parts(rows),
            stale_parts(rows),
        ]
    });
    each.flatten().chain(endless_leases(input)).collect()
}

/// `Solid Queue: 3 jobs are lost, including InvoiceJob (lost by heartbeat)`
fn lost_jobs(
    input: &CheckInput<'_>,
    place: usize,
    rows: &InstallationRows,
    lost: &[&JobRow],
) -> Option<Finding> {
    let first = lost.first()?;
    let source = source_name(rows);
    let job = job_name(first);
    let (state, proof) = (first.judged.state.as_str(), first.judged.proof.as_str());
    let many = text::count(lost.len() as u64);
    let what = match lost.len() {
        1 => format!("{source}: job {job} is {state} ({proof})"),
        _ => format!("{source}: {many} jobs are lost, including {job} ({state} by {proof})"),
    };
    let back = first.comes_back.as_ref().map(|back| format!("recovery: {back}"));
    let is_late = lost.iter().any(|row| row.judged.state == JobState::Late);
    let leaderless = is_late.then(|| leaderless(input, place, rows)).flatten();
    let connected = adapter::connected(first.sessions, rows.sessions);
    let back = leaderless.into_iter().chain(connected).chain(back).collect::<Vec<_>>().join("; ");
    let finding = Finding::new("adapter_job", Severity::Warning, &what, Subject::Job(first.id)).about(back);
    let since = lost.iter().filter_map(|row| row.judged.since).min();
    Some(Finding { since, ..finding })
}

/// `Solid Queue: 1,204 jobs are due, the oldest for 12m4s, and …`, followed by the state of the workers.
fn unserved_queue<'a>(
    input: &CheckInput<'_>,
    rows: &InstallationRows,
    queues: impl Iterator<Item = &'a QueueRow>,
) -> Option<Finding> {
    let overdue = input.thresholds.task_overdue;
    let age = |row: &QueueRow| row.oldest_at.map(|oldest| input.age(oldest));
    let unserved: Vec<&QueueRow> = queues.filter(|row| row.state == QueueState::Unserved).collect();
    let worst = unserved.iter().filter(|row| age(row).is_some_and(|age| age > overdue));
    let worst = worst.min_by_key(|row| row.oldest_at)?;
    let oldest = text::duration(age(worst).unwrap_or_default());
    let who = match rows.workers.observed().map(<[_]>::len) {
        Observed::Read(1) => "its worker has disconnected".to_owned(),
        Observed::Read(many) if many > 1 => format!("none of its {many} workers is alive"),
        _ if rows.sessions == Some(0) => "no session of a worker is connected".to_owned(),
        Observed::Read(_) => "no worker is listed".to_owned(),
        _ => return None,
    };
    let what = format!("{}, and {who}", due_words(rows, &unserved, &oldest));
    Some(of_queue("adapter_queue", worst, &what))
}

/// `GoodJob: 30 jobs are due, the oldest for 32m05s`: the system is behind, even if nothing shows that no worker serves it.
fn overdue_queue<'a>(
    input: &CheckInput<'_>,
    rows: &InstallationRows,
    queues: impl Iterator<Item = &'a QueueRow>,
) -> Option<Finding> {
    let limit = input.thresholds.queue_pending;
    let is_late = |row: &&QueueRow| row.state == QueueState::Overdue && input.is_older(row.oldest_at, limit);
    let late: Vec<&QueueRow> = queues.filter(is_late).collect();
    let worst = late.iter().min_by_key(|row| row.oldest_at)?;
    let oldest = text::duration(input.age(worst.oldest_at?));
    Some(of_queue("adapter_overdue", worst, &due_words(rows, &late, &oldest)))
}

/// `Solid Queue: 1,204 jobs are due, the oldest for 12m4s`
fn due_words(rows: &InstallationRows, queues: &[&QueueRow], oldest: &str) -> String {
    let due: Vec<_> = queues.iter().filter_map(|row| row.counts.get("due")).collect();
    let more = if due.iter().any(|count| count.is_least) { "+" } else { "" };
    let source = source_name(rows);
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
fn endless_leases(input: &CheckInput<'_>) -> Vec<Finding> {
    let held = input.adapters.leases.iter().filter(|row| row.state == LeaseState::Held && row.left.is_none());
    let found = held.filter_map(|row| {
        input.snapshot.adapters.get(row.place.0).filter(|rows| rows.leases.is_known())?;
        let since = row.acquired_at.filter(|at| input.age(*at) >= input.thresholds.task_timeout)?;
        let name = |words: &str| text::fit(&text::one_line_prefix(words, 80), 40).into_owned();
        let (source, id) = (name(&row.source), name(&row.key));
        let owner = name(row.owner.as_deref().unwrap_or("an unknown holder"));
        let age = text::duration(input.age(since));
        let summary = format!("{source}: lease {id} is held by {owner} for {age}, and never expires");
        let finding = Finding::new("adapter_lease", Severity::Warning, summary, Subject::JobLease(row.id));
        let finding = finding.short(format!("{source}: {id} held {age} by {owner}"));
        Some(Finding { since: Some(since), ..finding.about(row.note.as_deref().unwrap_or_default()) })
    });
    found.take(LIMIT).collect()
}

/// The heartbeats of its workers are late, or in the future, by whole half hours.
fn other_zone(rows: &InstallationRows) -> Option<Finding> {
    let offset = adapter::offset(rows)?;
    let (many, name) = (text::duration(offset.abs().as_seconds_f64()), source_name(rows));
    let lies = if offset < TimeDelta::zero() { "ahead" } else { "back" };
    let short = format!("{name}: its workers may write times in another time zone");
    let about = format!(
        "the last heartbeat of each is {many} {lies}, to the minute; set time_zone in [adapters.{}] of the config to their zone",
        rows.installation.adapter.name
    );
    Some(Finding::new("adapter", Severity::Info, &*short, Subject::Section("adapters")).about(about))
}

fn refused_tables(rows: &InstallationRows) -> Option<Finding> {
    let reason = rows.installation.refused.as_ref()?;
    let short = if rows.installation.is_somewhere() {
        format!("{} exists, but is not read", source_name(rows))
    } else {
        format!("{}: not all of its tables were searched", source_name(rows))
    };
    Some(unreadable(Severity::Info, short, reason))
}

fn unreadable(severity: Severity, short: String, reason: &Text) -> Finding {
    let summary = format!("{short}: {reason}");
    Finding::new("adapter", severity, summary, Subject::Section("adapters")).short(short)
}

/// Parts for which no query may be used.
fn unread_parts(rows: &InstallationRows) -> Option<Finding> {
    let is_unread = |choice: &&QueryChoice| choice.used().is_none();
    let unread: Vec<&QueryChoice> = rows.installation.choices.iter().filter(is_unread).collect();
    let names: Vec<&str> = unread.iter().map(|choice| choice.part.as_str()).collect();
    let reason = unread.first()?.tried.last()?.outcome.as_ref().err()?;
    let short = format!("{}: {} cannot be read", source_name(rows), names.join(", "));
    Some(unreadable(Severity::Info, short, reason))
}

/// Parts whose last reading failed, such as one that timed out so often that it is no longer read.
fn stale_parts(rows: &InstallationRows) -> Option<Finding> {
    let parts = rows.jobs.keys().chain(&Part::OTHERS);
    let errors: Vec<(Part, &Text)> = parts.filter_map(|part| Some((*part, rows.read_of(*part).1?))).collect();
    let (_, reason) = errors.first()?;
    let names: Vec<&str> = errors.iter().map(|(part, _)| part.as_str()).collect();
    let short = format!("{}: {} could not be read", source_name(rows), names.join(", "));
    Some(unreadable(Severity::Warning, short, reason))
}

fn job_name(row: &JobRow) -> String {
    short(row.job.name.as_deref().unwrap_or(&row.job.id), 60)
}

fn source_name(rows: &InstallationRows) -> String {
    short(&rows.installation.label(), 40)
}

/// `no leader: its lease expired 5m ago`, if the leader has a lease.
fn leaderless(input: &CheckInput<'_>, place: usize, rows: &InstallationRows) -> Option<String> {
    if !rows.installation.adapter.evidence.leads_by_lease || !rows.leases.is_known() {
        return None;
    }
    let mut leases = input.adapters.leases.iter().filter(|row| row.place.0 == place);
    if leases.clone().any(|row| row.state == LeaseState::Held) {
        return None;
    }
    let left = leases.find_map(|row| row.left);
    let ended = left.map(|left| format!(": its lease expired {} ago", text::duration(-left)));
    Some(format!("no leader{}", ended.unwrap_or_default()))
}

/// Job systems of others: jobs that do not continue, and what waits behind a job whose worker was lost.
///
/// For each installation at most one finding of each kind, and one for each job that keeps others waiting.
pub(super) fn stuck_adapters(input: &CheckInput<'_>) -> Vec<Finding> {
    let installations = input.snapshot.adapters.iter().enumerate();
    let each = installations.flat_map(|(place, rows)| {
        let its: Vec<&JobRow> = input.adapters.rows.iter().filter(|row| row.place == place).collect();
        let mut found = kept_keys(rows, &its);
        found.extend(stuck_jobs(rows, &its));
        found.extend(expired_limits(input, rows, &its));
        found.extend(not_made_due(input, place, rows, &its));
        found.extend(not_started(input, place, rows));
        found
    });
    each.collect()
}

/// `Procrastinate: job Mail is lost (heartbeat) and keeps lock orders/7: 3 listed jobs wait for it`
fn kept_keys(rows: &InstallationRows, its: &[&JobRow]) -> Vec<Finding> {
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
        let key = short(key, 60);
        let summary = format!(
            "{}: job {} is {state} ({proof}) and keeps {key}: {what}",
            source_name(rows),
            job_name(row)
        );
        let finding = Finding::new("adapter_key", Severity::Warning, &summary, Subject::Job(row.id));
        Some(Finding { since: row.judged.since, ..finding.about(comes_back(row)) })
    });
    each.collect()
}

/// `Quartz: 2 jobs will not continue without help, including Mail`, followed by the reason: `its trigger is ACQUIRED, and
/// …`
fn stuck_jobs(rows: &InstallationRows, its: &[&JobRow]) -> Option<Finding> {
    let stuck: Vec<&&JobRow> = its.iter().filter(|row| row.job.stuck.is_some()).collect();
    let first = stuck.first()?;
    let (source, job) = (source_name(rows), job_name(first));
    let many = text::count(stuck.len() as u64);
    let summary = match stuck.len() {
        1 => format!("{source}: job {job} will not continue without help"),
        _ => format!("{source}: {many} jobs will not continue without help, including {job}"),
    };
    let reason = text::one_line_prefix(first.job.stuck.as_deref().unwrap_or_default(), 200);
    let finding = Finding::new("adapter_stuck", Severity::Warning, summary, Subject::Job(first.id));
    let since = stuck.iter().filter_map(|row| row.job.finished_at.or(row.job.due_at)).min();
    Some(Finding { since, ..finding.about(reason) })
}

/// `Solid Queue: 3 jobs are blocked by a limit that expired 12m4s ago, including Mail (orders/7)`
fn expired_limits(input: &CheckInput<'_>, rows: &InstallationRows, its: &[&JobRow]) -> Option<Finding> {
    let age = |row: &JobRow| row.judged.since.map(|since| input.age(since));
    // Until then its system frees it automatically, so there is nothing to report.
    let limit = |row: &JobRow| row.job.limit.unwrap_or(input.thresholds.task_overdue);
    let is_over = |row: &&&JobRow| {
        row.judged.state == JobState::Blocked
            && row.judged.proof == Proof::Lease
            && age(row).is_some_and(|age| age > limit(row))
    };
    let all: Vec<&&JobRow> = its.iter().filter(is_over).collect();
    let first = all.iter().min_by_key(|row| row.judged.since)?;
    let (source, job) = (source_name(rows), job_name(first));
    let ago = text::duration(age(first).unwrap_or_default());
    let key =
        first.job.concurrency_key.as_deref().map(|key| format!(" ({})", text::one_line_prefix(key, 60)));
    let (key, many) = (key.unwrap_or_default(), text::count(all.len() as u64));
    let summary = match all.len() {
        1 => format!("{source}: job {job} is blocked by a limit that expired {ago} ago{key}"),
        _ => format!(
            "{source}: {many} jobs are blocked by a limit that expired {ago} ago, including {job}{key}"
        ),
    };
    let finding = Finding::new("adapter_asleep", Severity::Warning, summary, Subject::Job(first.id));
    Some(Finding { since: first.judged.since, ..finding.about(comes_back(first)) })
}

/// `Solid Queue: 3 scheduled jobs were due up to 12m4s ago, but have not been put into their queues`
fn not_made_due(
    input: &CheckInput<'_>,
    place: usize,
    rows: &InstallationRows,
    its: &[&JobRow],
) -> Option<Finding> {
    // Rows that were read some time ago may have been queued since.
    let read_at = rows.jobs.get(&Part::Scheduled)?.taken_at?;
    let late = |row: &JobRow| row.job.due_at.map(|due| (read_at - due).as_seconds_f64());
    let is_late = |row: &&&JobRow| {
        row.part == Part::Scheduled && late(row).is_some_and(|late| late > input.thresholds.task_overdue)
    };
    let all: Vec<&&JobRow> = its.iter().filter(is_late).collect();
    let first = all.iter().min_by_key(|row| row.job.due_at)?;
    let (source, job) = (source_name(rows), job_name(first));
    let (longest, many) = (text::duration(late(first).unwrap_or_default()), text::count(all.len() as u64));
    let summary = match all.len() {
        1 => format!(
            "{source}: scheduled job {job} was due {longest} ago, but has not been put into its queue"
        ),
        _ => format!(
            "{source}: {many} scheduled jobs were due up to {longest} ago, but have not been put into their queues"
        ),
    };
    let finding = Finding::new("adapter_asleep", Severity::Warning, summary, Subject::Job(first.id));
    let about = leaderless(input, place, rows).unwrap_or_default();
    Some(Finding { since: first.job.due_at, ..finding.about(about) })
}

/// `PgQueuer: 3 schedules were due up to 12m4s ago, but were not started, including report`
fn not_started(input: &CheckInput<'_>, place: usize, rows: &InstallationRows) -> Option<Finding> {
    let read_at = rows.schedules.taken_at?;
    let its = input.adapters.schedules.iter().filter(|row| row.place.0 == place);
    let late: Vec<_> = its.filter(|row| row.state == ScheduleState::Overdue).collect();
    let first = late.iter().min_by_key(|row| row.schedule.next_run_at)?;
    let due = first.schedule.next_run_at?;
    let (source, longest) = (source_name(rows), text::duration((read_at - due).as_seconds_f64()));
    let name = first.schedule.name.as_deref().unwrap_or(&first.schedule.id);
    let name = short(name, 60);
    let summary = match late.len() {
        1 => format!("{source}: schedule {name} was due {longest} ago, but was not started"),
        many => {
            let many = text::count(many as u64);
            format!(
                "{source}: {many} schedules were due up to {longest} ago, but were not started, including {name}"
            )
        }
    };
    let subject = Subject::JobSchedule(first.id);
    let finding = Finding::new("adapter_schedule", Severity::Warning, summary, subject);
    let about = leaderless(input, place, rows).unwrap_or_default();
    Some(Finding { since: Some(due), ..finding.about(about) })
}

fn comes_back(row: &JobRow) -> String {
    row.comes_back.as_ref().map(|back| format!("recovery: {back}")).unwrap_or_default()
}

/// A job is close to its limit from this share of it on.
const CLOSE: f64 = 0.8;

/// Job systems of others: jobs whose run time is close to their system's limit. At the limit the job is given to a worker
/// again, even if the first one still works.
pub(super) fn adapter_limits(input: &CheckInput<'_>) -> Vec<Finding> {
    let installations = input.snapshot.adapters.iter().enumerate();
    installations.filter_map(|(place, rows)| close_to_limit(input, place, rows)).collect()
}

/// `pg-boss: job mail has run for 12m40s of 15m00s`
fn close_to_limit(input: &CheckInput<'_>, place: usize, rows: &InstallationRows) -> Option<Finding> {
    let its = input.adapters.rows.iter().filter(|row| row.place == place && row.part == Part::Running);
    let mut all: Vec<(&JobRow, f64, f64)> = its.filter_map(|row| run_and_limit(rows, row)).collect();
    all.order_by(|(_, ran, limit), (_, other, its_limit)| (other / its_limit).total_cmp(&(ran / limit)));
    let (first, ran, limit) = *all.first()?;
    let (source, job) = (source_name(rows), job_name(first));
    let time = format!("{} of {}", text::duration(ran), text::duration(limit));
    let many = text::count(all.len() as u64);
    let summary = match all.len() {
        1 => format!("{source}: job {job} has run for {time}"),
        _ => format!("{source}: {many} jobs have used 80 % of their time limit or more, {job} for {time}"),
    };
    let adapter = &rows.installation.adapter;
    let then = adapter.comes_back(Proof::Lease).or_else(|| adapter.comes_back(Proof::Age));
    let about = then.map(|then| format!("then: {then}")).unwrap_or_default();
    let finding = Finding::new("adapter_limit", Severity::Warning, summary, Subject::Job(first.id));
    Some(Finding { since: first.job.started_at, ..finding.about(about) })
}

/// A running job that is close to its limit, its run time when it was read, and its limit, in seconds.
fn run_and_limit<'a>(rows: &InstallationRows, row: &'a JobRow) -> Option<(&'a JobRow, f64, f64)> {
    let limit = row.job.limit.or_else(|| rows.installation.adapter.age_limit())?;
    let read_at = rows.jobs.get(&Part::Running)?.taken_at?;
    let ran = (read_at - row.job.started_at?).as_seconds_f64();
    let is_close = matches!(row.judged.state, JobState::Running | JobState::Unknown) && ran >= CLOSE * limit;
    is_close.then_some((row, ran, limit))
}
