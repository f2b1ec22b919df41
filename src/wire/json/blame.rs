use std::sync::Arc;

use serde::Serialize;

use super::rows::Time;
use crate::model::blame::{self, Group, Span};

/// Maximum roots written, the most expensive first.
const ROOTS: usize = 50;

/// Maximum episodes written: those that continue, and the most expensive of the others.
const EPISODES: usize = 50;

#[derive(Debug, Serialize)]
pub(crate) struct Blame<'a> {
    span: f64,
    since: Option<Time>,
    until: Option<Time>,
    not_seen: f64,
    before: Before,
    seconds: f64,
    standard_error: f64,
    waits: u64,
    by_root: Vec<Root<'a>>,
    by_root_omitted: u64,
    episodes: Vec<Episode<'a>>,
    episodes_omitted: u64,
}

/// Sessions that already waited at the first snapshot.
#[derive(Debug, Serialize)]
struct Before {
    sessions: u32,
    longest: Option<f64>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Root<'a> {
    application: &'a str,
    role: &'a str,
    database: &'a str,
    doing: &'a str,
    statement: &'a str,
    lock: &'a str,
    query_tag: &'a str,
    seconds: f64,
    standard_error: f64,
    share: f64,
    waits: u64,
    most: u32,
    episodes: u64,
}

#[derive(Debug, Serialize)]
struct Episode<'a> {
    number: u64,
    pid: i32,
    backend_start: Option<Time>,
    xact_start: Option<Time>,
    who: &'a str,
    lock: &'a str,
    begin: Time,
    last: Time,
    goes_on: bool,
    seconds: f64,
    standard_error: f64,
    waits: u64,
    most: u32,
    ending: &'static str,
    note: &'a str,
    ran: Vec<Ran<'a>>,
}

#[derive(Debug, Serialize)]
struct Ran<'a> {
    at: Option<Time>,
    statement: &'a str,
    in_line: Option<i32>,
}

fn ran(ran: &blame::Ran) -> Ran<'_> {
    let in_line = Some(ran.in_line).filter(|pid| *pid != 0);
    Ran { at: ran.at.map(Time), statement: &ran.statement, in_line }
}

fn before(before: blame::Before) -> Before {
    Before { sessions: before.sessions, longest: before.longest, seconds: before.seconds }
}

/// `None` with a single snapshot: waiting is measured between two.
pub(crate) fn blame(blame: &blame::Blame) -> Option<Blame<'_>> {
    let (since, until) = blame.since.zip(blame.until).filter(|_| blame.looks > 1)?;
    let total = blame.total(Span::All);
    let rows = blame.by(Group::Root, Span::All);
    let told = rows.iter().filter(|row| !row.keys.is_empty()).count();
    let roots = rows.iter().filter_map(|row| Some((row, row.keys.first()?)));
    let roots = roots.take(ROOTS).filter_map(|(row, key)| root(blame, row, key, total.seconds));
    let mut episodes: Vec<&blame::Episode> = blame.episodes_in(Span::All).collect();
    let count = episodes.len();
    episodes.sort_by(|a, b| {
        let rank = |one| (blame.goes_on(one), one.sums.seconds);
        let ((a_on, a_cost), (b_on, b_cost)) = (rank(a), rank(b));
        b_on.cmp(&a_on).then(b_cost.total_cmp(&a_cost))
    });
    episodes.truncate(EPISODES);
    episodes.sort_by_key(|episode| episode.number);
    Some(Blame {
        span: (until - since).as_seconds_f64(),
        since: Some(Time(since)),
        until: Some(Time(until)),
        not_seen: blame.missing,
        before: before(blame.before),
        seconds: total.seconds,
        standard_error: total.standard_error(),
        waits: total.waits,
        by_root: roots.collect(),
        by_root_omitted: (told.saturating_sub(ROOTS) as u64).saturating_add(blame.table.other_keys),
        episodes_omitted: (count.saturating_sub(EPISODES) as u64).saturating_add(blame.table.forgotten.0),
        episodes: episodes.into_iter().map(|one| episode(blame, one)).collect(),
    })
}

/// The key is borrowed from the table, because the row does not live long enough.
fn root<'a>(
    blame: &'a blame::Blame,
    row: &blame::Row,
    key: &Arc<blame::Key>,
    total: f64,
) -> Option<Root<'a>> {
    let key = &blame.table.keys.iter().find(|cost| Arc::ptr_eq(&cost.key, key))?.key;
    Some(Root {
        application: &key.application,
        role: &key.role,
        database: &key.database,
        doing: &key.doing,
        statement: &key.statement,
        lock: &key.lock,
        query_tag: &key.tag,
        seconds: row.sums.seconds,
        standard_error: row.sums.standard_error(),
        share: if total > 0.0 { row.sums.seconds / total } else { 0.0 },
        waits: row.sums.waits,
        most: row.sums.most,
        episodes: row.episodes,
    })
}

fn episode<'a>(blame: &blame::Blame, episode: &'a blame::Episode) -> Episode<'a> {
    let ran = episode.ran.iter();
    Episode {
        number: episode.number,
        pid: episode.pid,
        backend_start: episode.backend_start.map(Time),
        xact_start: episode.xact_start.map(Time),
        who: &episode.who,
        lock: &episode.lock,
        begin: Time(episode.begin),
        last: Time(episode.last),
        goes_on: blame.goes_on(episode),
        seconds: episode.sums.seconds,
        standard_error: episode.sums.standard_error(),
        waits: episode.sums.waits,
        most: episode.sums.most,
        ending: episode.ending.as_str(),
        note: &episode.note,
        ran: ran.map(self::ran).collect(),
    }
}
