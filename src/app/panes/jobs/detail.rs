use super::tone;
use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, heading, keep_said, number, party, state, words};
use crate::app::line::{Line, Tone};
use crate::app::panes::installations::with_version;
use crate::app::panes::row::RowId;
use crate::model::adapter::{self, JobRow, Proof, State};
use crate::model::wait_graph::Party;
use crate::text;

pub(in crate::app) fn job<'a>(context: &Context<'a>, id: RowId) -> Option<&'a JobRow> {
    let RowId::Job(id) = id else { return None };
    context.view.adapters.rows.iter().find(|row| row.id == id)
}

pub(super) fn lines(context: &Context<'_>, id: RowId, _: usize) -> Option<Vec<Line>> {
    let row = job(context, id)?;
    let (job, judged) = (&row.job, &row.judged);
    let mut lines = vec![
        state(judged.state.as_str(), tone(judged.state), why(context, row)),
        field("recovery", words(row.comes_back.as_ref()), Tone::Plain),
        field("job", words(job.name.as_ref()), Tone::Plain),
        field("id", text::one_line(&job.id), Tone::Plain),
        field("kept in", with_version(context, row.place), Tone::Plain),
        fields(&[
            ("queue", words(job.queue.as_ref())),
            ("priority", number(job.priority)),
            ("attempt", number(job.attempt)),
            ("of", number(job.max_attempts)),
        ]),
        field("worker", words(row.worker.as_ref()), Tone::Plain),
        fields(&[
            ("due", when(context, row)),
            ("started", ago(context, job.started_at)),
            ("ended", ago(context, job.finished_at)),
        ]),
        field("stuck", words(job.stuck.as_ref()), Tone::Warning),
        field("one at a time", words(job.concurrency_key.as_ref()), Tone::Plain),
        field("blocked by", words(job.blocked_by.as_ref()), Tone::Plain),
        field("note", words(job.note.as_ref()), Tone::Plain),
    ];
    if judged.state.is_lost() || judged.state == State::Unknown {
        let all = context.snapshot.adapters.get(row.place).and_then(|rows| rows.sessions);
        let connected = adapter::connected(row.sessions, all).unwrap_or_default();
        lines.push(field("sessions", connected, Tone::Plain));
    }
    keep_said(&mut lines);
    if let Some(key) = job.key {
        lines.push(field("key", key.to_string(), Tone::Plain));
    }
    if let Some(pid) = judged.pid {
        lines.push(field("session", party(context, Party::Backend(pid)), Tone::Plain));
    }
    if let Some(advice) = &row.advice {
        lines.push(Line::new());
        lines.push(heading("In its own console (y copies it)"));
        lines.push(Line::new().with("  ", Tone::Plain).with(text::one_line(advice), Tone::Plain));
    }
    if let Some(error) = job.error.as_ref().filter(|error| !error.is_empty()) {
        lines.push(Line::new());
        lines.push(heading("Last error"));
        lines.push(Line::new().with("  ", Tone::Plain).with(text::one_line(error), Tone::Critical));
    }
    Some(lines)
}

fn when(context: &Context<'_>, row: &JobRow) -> String {
    let left = row.job.due_at.map(|due| (due - context.snapshot.taken_at).as_seconds_f64());
    match left {
        Some(left) if left > 0.0 => format!("in {}", text::duration(left)),
        _ => ago(context, row.job.due_at),
    }
}

fn why(context: &Context<'_>, row: &JobRow) -> String {
    let since = context.age(row.judged.since).map(text::duration).unwrap_or_default();
    let words = match (row.judged.state, row.judged.proof) {
        (State::Orphan, Proof::Lock) => {
            return format!(
                ": no session has held its lock for {since}; its session ended, but its process may still run"
            );
        }
        (State::Orphan, _) => ": the session recorded for it has ended",
        (State::Lost, Proof::Heartbeat) => {
            return format!(
                ": the last heartbeat of its worker was {since} ago, longer than its system permits; it may still be working"
            );
        }
        (State::Lost, Proof::Presence) => {
            return format!(
                ": no session of a worker has been connected for {since}; only a hint behind a pooler"
            );
        }
        (State::Unknown, Proof::Presence) => {
            return format!(": no session of a worker has been connected for {since}");
        }
        (State::Lost, Proof::Absent) => ": its worker is no longer listed, and no other worker finishes it",
        (State::Lost, _) => {
            return format!(": its lease expired {since} ago; not known whether its worker is still working");
        }
        (State::Late, _) => {
            ": its system should have returned it to the queue by now; not known which worker it lost"
        }
        (State::Slow, _) => ": for longer than its limit",
        (State::Overdue, _) => ": due for longer than [thresholds] task_overdue",
        (State::Blocked, Proof::Lease) => {
            return format!(
                ": the limit that blocks it expired {since} ago, but its system has not released it"
            );
        }
        (State::Unknown, Proof::Lock) => return format!(": no session has held its lock for {since}"),
        (State::Unknown, _) => ": recorded as running; not known whether a worker runs it",
        (State::Running, Proof::Lock) => ": its lock is held",
        (State::Running, Proof::Session) => ": the session recorded for it is connected",
        (State::Running, Proof::Heartbeat) => ": its worker sent a heartbeat",
        (State::Running, Proof::Lease) => ": its lease is valid",
        (State::Paused, _) => ": its queue is paused",
        _ => "",
    };
    words.to_owned()
}
