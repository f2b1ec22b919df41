use super::{Log, Mark, Report};
use crate::wire::json::locks::blame;
use crate::wire::json::object::{self, Json, object};

pub fn to_string(report: &Report) -> Result<String, serde_json::Error> {
    object::text(&object!(
        report;
        format = 1,
        target, server, from, to,
        looks = report.looks.len(),
        refresh, redaction, program,
        line[] = report.columns.iter().map(|column| object!(
            column;
            at,
            waiting = column.is_known.then_some(column.waiting),
            roots = column.is_known.then_some(column.roots),
            sign,
        )),
        marks[] = report.marks.iter().map(mark),
        blame = blame(&report.blame),
        worst = report.worst.as_ref().map(|worst| object!(
            worst;
            at, waiting,
            chain = worst.tree.lines,
            findings,
            why[] = worst.why.iter().map(|why| object!(why; who, said)),
        )),
        tries[] = report.tries.iter().map(|tries| object!(
            tries;
            who, statement, runs, from, to, longest, waiting,
        )),
        tasks[] = report.tasks.iter().map(|task| object!(
            task;
            at, text,
            ended_at = task.ended.as_ref().map(|(at, _)| at),
            ended = task.ended.as_ref().map(|(_, how)| how),
        )),
        actions[] = report.actions.iter().map(mark),
        settings[] = report.settings.iter().map(|setting| object!(setting; name, value, advice)),
        holes[] = report.holes.iter().map(|hole| object!(hole; from, to)),
        stale[] = report.stale.iter().map(mark),
        damaged,
        counted_anew = report.is_counted_anew,
        log = report.log.as_ref().map(log),
    ))
}

fn mark(mark: &Mark) -> impl Json {
    object!(mark; at, sign, text)
}

fn log(log: &Log) -> impl Json {
    object!(
        log;
        files[] = log.files.iter().map(|file| object!(
            file;
            name, format,
            from = file.span.map(|(from, _)| from),
            to = file.span.map(|(_, to)| to),
            entries, damaged,
            other_server = file.is_other,
        )),
        other_server = log.is_other(),
        seen_waits = log.seen.count,
        seen_seconds = log.seen.seconds,
        unseen_waits = log.unseen.count,
        unseen_seconds = log.unseen.seconds,
        waits[] = log.waits.iter().map(|wait| object!(
            wait;
            began = wait.begin,
            seconds, who, mode,
            lock = wait.on,
            behind,
            ended = wait.end.words(),
            seen = wait.seen.words(),
            statement,
        )),
        deadlocks[] = log.deadlocks.iter().map(|deadlock| object!(deadlock; at, victim, statement, waits)),
        deadlocks_omitted,
        ended[] = log.ended.iter().map(|(at, text)| object!(at, text)),
        ended_omitted,
    )
}
