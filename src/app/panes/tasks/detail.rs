use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, heading, in_or_ago, number, of, party, session, state, words};
use crate::app::line::{Line, Tone};
use crate::app::panes::RowId;
use crate::app::panes::cell::job_tone;
use crate::model::lock::{Lock, LockTag};
use crate::model::task::{Execution, JobState, Schedule, TaskKey, TaskRow, evidence};
use crate::model::wait_graph::Party;
use crate::model::worker_types::{WorkKind, WorkerTypes};
use crate::model::{Timestamp, lock_key::LockKey};
use crate::text;

pub(super) fn lines(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let RowId::Task(task, again) = id else { return None };
    let row = context.task(task, again)?;
    let mut lines = vec![state_line(context, row)];
    lines.extend(row.schedule(context.snapshot).map(|task| schedule(context, task)).unwrap_or_default());
    lines.push(Line::new());
    lines.extend(row.execution(context.snapshot).map(|one| running(context, row, one)).unwrap_or_default());
    lines.extend(key(context, row));
    lines.push(Line::new());
    lines.extend(last(context, row));
    Some(lines)
}

fn state_line(context: &Context<'_>, row: &TaskRow) -> Line {
    let seen = context.age(row.since).map(text::duration).unwrap_or_default();
    let over = row.age(context.snapshot).is_some_and(|age| age > row.limit);
    let past = if over && row.execution.is_some() { "past its limit; " } else { "" };
    let why = match row.state {
        JobState::Leaked => format!(": its key has been held for at least {seen}, and nothing runs"),
        JobState::Overdue if is_unserved(context, row) => {
            ": due, and no worker that is connected takes its type".to_owned()
        }
        JobState::Overdue => ": due, enabled and not started".to_owned(),
        JobState::GivenUp => ": its last execution failed, and nothing starts it again".to_owned(),
        state if state.is_uncommitted() => match row.holder {
            Some(pid) => {
                format!(": {pid} holds its key in an open transaction; its row is visible when that commits")
            }
            None => String::new(),
        },
        _ if row.execution.is_some() => format!(": {past}{}", evidence(row, context.snapshot)),
        _ => String::new(),
    };
    state((row.state.as_str(), job_tone(row.state)), why)
}

fn is_unserved(context: &Context<'_>, row: &TaskRow) -> bool {
    let Some(set) = row.set(context.snapshot).filter(|set| set.tables.own_keys) else { return false };
    let kind = row.schedule(context.snapshot).and_then(|task| task.kind.as_deref());
    WorkerTypes::lacks(context.view, context.snapshot, (&set.tables.schedules, WorkKind::Tasks), kind)
}

fn schedule(context: &Context<'_>, task: &Schedule) -> Vec<Line> {
    let next =
        task.next_run_at.map(|at| format!("{} ({})", in_or_ago(context.until(at)), context.time_of_day(at)));
    let enabled = task.enabled.map(|enabled| if enabled { "yes" } else { "no" }.to_owned());
    let mut lines = vec![
        fields(&[
            ("type", words(task.kind.as_ref())),
            ("cron", words(task.cron.as_ref())),
            ("time zone", words(task.time_zone.as_ref().filter(|_| task.cron.is_some()))),
            ("enabled", enabled.unwrap_or_default()),
            ("priority", number(task.priority)),
        ]),
        fields(&[("last run", ago(context, task.last_run_at)), ("due", next.unwrap_or_default())]),
        fields(&[
            ("timeout", task.timeout.map(text::duration).unwrap_or_default()),
            ("failed attempts", of(task.attempts, task.max_attempts)),
            ("retry delay", task.retry_delay.map(text::duration).unwrap_or_default()),
        ]),
    ];
    lines.retain(|line| line.spans.len() > 1);
    lines
}

fn running(context: &Context<'_>, row: &TaskRow, execution: &Execution) -> Vec<Line> {
    let runs = row
        .age(context.snapshot)
        .map(|age| format!("{} of {}", text::duration(age), text::duration(row.limit)));
    let mut lines = vec![
        heading(format!("Execution {}", execution.id)),
        fields(&[
            ("worker", words(execution.worker.as_ref())),
            ("runs", runs.unwrap_or_default()),
            ("attempt", number(execution.attempt)),
        ]),
        fields(&[
            ("started", ago(context, execution.started_at)),
            ("heartbeat", ago(context, execution.heartbeat_at)),
        ]),
    ];
    if let Some(pid) = execution.backend_pid {
        // A start that is hidden from this role is not a contradiction.
        let same = |started: Option<Timestamp>| {
            execution.backend_start.zip(started).is_none_or(|(logged, seen)| logged == seen)
        };
        let is_alive = context.backend(pid).is_some_and(|backend| same(backend.backend_start));
        lines.push(session(context, pid, is_alive, Tone::Warning));
    }
    lines.retain(|line| line.spans.len() > 1 || line.spans.iter().any(|span| span.tone == Tone::Title));
    lines
}

/// The holder of the plain number of a task that does not run: it may be any session, for any reason.
fn other_holder(context: &Context<'_>, row: &TaskRow, tag: &LockTag) -> Option<String> {
    if row.execution.is_some() {
        return None;
    }
    let holds = |lock: &&Lock| lock.granted && lock.tag == *tag;
    let lock = context.snapshot.locks.last_rows().iter().find(holds)?;
    Some(
        lock.pid
            .map_or_else(|| "a prepared transaction".to_owned(), |pid| party(context, Party::Backend(pid))),
    )
}

fn key(context: &Context<'_>, row: &TaskRow) -> Vec<Line> {
    let Some(tag) = row.tag else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(LockKey::Bigint(number)) = tag.advisory_key() {
        let kind = match TaskKey::of(number) {
            TaskKey::Own(id) => format!("{number} (task {id} in the namespace of tasks)"),
            TaskKey::Raw(_) => format!("{number} (a plain number, which other software may use)"),
        };
        lines.push(field("key", kind, Tone::Plain));
    }
    let holder = match (row.held, row.holder) {
        (false, _) => match other_holder(context, row, &tag) {
            Some(who) => format!("{who}, but no execution of this task is running"),
            None => "no session".to_owned(),
        },
        (true, None) => "a prepared transaction".to_owned(),
        (true, Some(pid)) => {
            let state = crate::app::panes::backends::root_state(context, Party::Backend(pid), 60).text;
            format!("{}  {state}", party(context, Party::Backend(pid)))
        }
    };
    lines.push(field("held by", holder, Tone::Plain));
    if let Some(queue) = context.queue(&tag) {
        lines.push(field(
            "waited for by",
            format!("{}; f follows its lock", queue.waiters.len()),
            Tone::Warning,
        ));
    }
    lines
}

fn last(context: &Context<'_>, row: &TaskRow) -> Vec<Line> {
    let Some(set) = row.set(context.snapshot) else { return Vec::new() };
    let mine = || set.executions.last_rows().iter().filter(|execution| execution.task_id == row.task.id);
    if mine().next().is_none() {
        return vec![heading("No executions")];
    }
    let mut lines = vec![heading("Last executions")];
    for execution in mine() {
        lines.push(execution_line(context, execution));
        let error = execution.error.as_deref().unwrap_or_default();
        // The error usually names it already.
        if let Some(by) = execution.recovered_by.as_deref().filter(|by| !error.contains(by)) {
            lines.push(field("", format!("recovered by {}", text::one_line(by)), Tone::Warning));
        }
        if !error.is_empty() {
            lines.push(field("", text::one_line(error), Tone::Critical));
        }
    }
    lines
}

fn execution_line(context: &Context<'_>, execution: &Execution) -> Line {
    let status = words(execution.status.as_ref());
    let tone = match status.as_str() {
        "running" | "completed" => Tone::Good,
        _ => Tone::Critical,
    };
    let took = execution.started_at.zip(execution.completed_at.or(Some(context.snapshot.taken_at)));
    let took = took.map(|(from, to)| text::duration((to - from).as_seconds_f64())).unwrap_or_default();
    let status = text::fit_pad(&status, 10, text::Align::Left);
    let worker = text::fit_pad(&words(execution.worker.as_ref()), 16, text::Align::Left);
    let attempt = execution.attempt.map(|attempt| format!("  attempt {attempt}")).unwrap_or_default();
    Line::new().with(format!("  {status} "), tone).with(
        format!("{worker} {took:>6}  began {}{attempt}", ago(context, execution.started_at)),
        Tone::Plain,
    )
}
