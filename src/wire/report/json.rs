use serde::Serialize;

use super::{Mark, Report};
use crate::model::Timestamp;
use crate::wire::json::{blame, line};

/// RFC 3339 with offset and microseconds.
fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, false)
}

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    target: &'a str,
    server: &'a str,
    from: String,
    to: String,
    looks: usize,
    refresh: f64,
    redaction: &'a str,
    program: &'a str,
    line: Vec<Column>,
    marks: Vec<Event<'a>>,
    blame: Option<blame::Blame<'a>>,
    worst: Option<Worst<'a>>,
    tries: Vec<Tries<'a>>,
    tasks: Vec<Task<'a>>,
    actions: Vec<Event<'a>>,
    settings: Vec<Setting<'a>>,
    holes: Vec<Between>,
    stale: Vec<Event<'a>>,
    damaged: u64,
    counted_anew: bool,
    log: Option<Log<'a>>,
}

/// Data from the server's log, not from snapshots.
#[derive(Serialize)]
struct Log<'a> {
    files: Vec<LogFile<'a>>,
    other_server: Option<&'a str>,
    seen_waits: u64,
    seen_seconds: f64,
    unseen_waits: u64,
    unseen_seconds: f64,
    waits: Vec<LogWait<'a>>,
    deadlocks: Vec<LogDeadlock<'a>>,
    deadlocks_omitted: u64,
    ended: Vec<LogEnded<'a>>,
    ended_omitted: u64,
}

#[derive(Serialize)]
struct LogFile<'a> {
    name: &'a str,
    format: &'static str,
    from: Option<String>,
    to: Option<String>,
    entries: u64,
    damaged: u64,
    other_server: Option<&'a str>,
}

#[derive(Serialize)]
struct LogWait<'a> {
    began: String,
    seconds: f64,
    who: &'a str,
    mode: &'a str,
    lock: &'a str,
    behind: &'a str,
    ended: &'static str,
    seen: &'static str,
    statement: &'a str,
}

#[derive(Serialize)]
struct LogDeadlock<'a> {
    at: String,
    victim: &'a str,
    statement: &'a str,
    waits: &'a [String],
}

#[derive(Serialize)]
struct LogEnded<'a> {
    at: String,
    text: &'a str,
}

impl<'a> From<&'a super::Log> for Log<'a> {
    fn from(log: &'a super::Log) -> Self {
        let files = log.files.iter().map(|file| LogFile {
            name: &file.name,
            format: file.format,
            from: file.span.map(|(from, _)| time(from)),
            to: file.span.map(|(_, to)| time(to)),
            entries: file.entries,
            damaged: file.damaged,
            other_server: file.is_other.as_deref(),
        });
        let waits = log.waits.iter().map(|wait| LogWait {
            began: time(wait.begin),
            seconds: wait.seconds,
            who: &wait.who,
            mode: &wait.mode,
            lock: &wait.on,
            behind: &wait.behind,
            ended: wait.end.words(),
            seen: wait.seen.words(),
            statement: &wait.statement,
        });
        let deadlocks = log.deadlocks.iter().map(|deadlock| LogDeadlock {
            at: time(deadlock.at),
            victim: &deadlock.victim,
            statement: &deadlock.statement,
            waits: &deadlock.waits,
        });
        let ended = log.ended.iter().map(|(at, text)| LogEnded { at: time(*at), text });
        Self {
            files: files.collect(),
            other_server: log.is_other(),
            seen_waits: log.seen.count,
            seen_seconds: log.seen.seconds,
            unseen_waits: log.unseen.count,
            unseen_seconds: log.unseen.seconds,
            waits: waits.collect(),
            deadlocks: deadlocks.collect(),
            deadlocks_omitted: log.deadlocks_omitted,
            ended: ended.collect(),
            ended_omitted: log.ended_omitted,
        }
    }
}

#[derive(Serialize)]
struct Column {
    at: String,
    waiting: Option<u32>,
    roots: Option<u32>,
    sign: Option<char>,
}

#[derive(Serialize)]
struct Event<'a> {
    at: String,
    sign: char,
    text: &'a str,
}

impl<'a> From<&'a Mark> for Event<'a> {
    fn from(mark: &'a Mark) -> Self {
        Self { at: time(mark.at), sign: mark.sign, text: &mark.text }
    }
}

#[derive(Serialize)]
struct Worst<'a> {
    at: String,
    waiting: u32,
    chain: &'a [String],
    findings: &'a [String],
    why: Vec<Why<'a>>,
}

#[derive(Serialize)]
struct Why<'a> {
    who: &'a str,
    said: &'a [String],
}

#[derive(Serialize)]
struct Tries<'a> {
    who: &'a str,
    statement: &'a str,
    runs: usize,
    from: String,
    to: String,
    longest: f64,
    waiting: usize,
}

#[derive(Serialize)]
struct Task<'a> {
    at: String,
    text: &'a str,
    ended_at: Option<String>,
    ended: Option<&'a str>,
}

#[derive(Serialize)]
struct Between {
    from: String,
    to: String,
}

#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    value: Option<&'a str>,
    advice: &'a str,
}

pub fn to_string(report: &Report) -> Result<String, serde_json::Error> {
    let columns = report.columns.iter();
    let columns = columns.map(|column| Column {
        at: time(column.at),
        waiting: column.is_known.then_some(column.waiting),
        roots: column.is_known.then_some(column.roots),
        sign: column.sign,
    });
    let worst = report.worst.as_ref().map(|worst| Worst {
        at: time(worst.at),
        waiting: worst.waiting,
        chain: &worst.tree.lines,
        findings: &worst.findings,
        why: worst.why.iter().map(|why| Why { who: &why.who, said: &why.said }).collect(),
    });
    let tries = report.tries.iter().map(|tries| Tries {
        who: &tries.who,
        statement: &tries.statement,
        runs: tries.runs,
        from: time(tries.from),
        to: time(tries.to),
        longest: tries.longest,
        waiting: tries.waiting,
    });
    let tasks = report.tasks.iter().map(|task| Task {
        at: time(task.at),
        text: &task.text,
        ended_at: task.ended.as_ref().map(|(at, _)| time(*at)),
        ended: task.ended.as_ref().map(|(_, how)| how.as_str()),
    });
    let settings = report.settings.iter().map(|setting| Setting {
        name: setting.name,
        value: setting.value.as_deref(),
        advice: &setting.advice,
    });
    line(&Document {
        format: 1,
        target: &report.target,
        server: &report.server,
        from: time(report.from),
        to: time(report.to),
        looks: report.looks.len(),
        refresh: report.refresh,
        redaction: &report.redaction,
        program: &report.program,
        line: columns.collect(),
        marks: report.marks.iter().map(Event::from).collect(),
        blame: blame::blame(&report.blame),
        worst,
        tries: tries.collect(),
        tasks: tasks.collect(),
        actions: report.actions.iter().map(Event::from).collect(),
        settings: settings.collect(),
        holes: report.holes.iter().map(|hole| Between { from: time(hole.from), to: time(hole.to) }).collect(),
        stale: report.stale.iter().map(Event::from).collect(),
        damaged: report.damaged,
        counted_anew: report.is_counted_anew,
        log: report.log.as_ref().map(Log::from),
    })
}
