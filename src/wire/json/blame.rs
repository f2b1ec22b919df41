use super::object::{Json, object};
use crate::model::blame::{self, Group, Span};

/// Maximum roots written, the most expensive first.
const ROOTS: usize = 50;

/// Maximum episodes written: those that continue, and the most expensive of the others.
const EPISODES: usize = 50;

/// `None` with a single snapshot: waiting is measured between two.
pub(in crate::wire) fn blame(blame: &blame::Blame) -> Option<impl Json> {
    let (since, until) = blame.since.zip(blame.until).filter(|_| blame.looks > 1)?;
    let total = blame.total(Span::All);
    let rows = blame.by(Group::Root, Span::All);
    let told = rows.iter().filter(|row| !row.keys.is_empty()).count();
    let mut episodes: Vec<&blame::Episode> = blame.episodes_in(Span::All).collect();
    let count = episodes.len();
    episodes.sort_by(|a, b| {
        let rank = |one| (blame.goes_on(one), one.sums.seconds);
        let ((a_on, a_cost), (b_on, b_cost)) = (rank(a), rank(b));
        b_on.cmp(&a_on).then(b_cost.total_cmp(&a_cost))
    });
    episodes.truncate(EPISODES);
    episodes.sort_by_key(|episode| episode.number);
    Some(object!(
        total;
        span = (until - since).as_seconds_f64(),
        since = since,
        until = until,
        not_seen = blame.missing,
        before = before(blame.before),
        seconds,
        standard_error = total.standard_error(),
        waits,
        by_root[] = rows.iter().filter(|row| !row.keys.is_empty()).take(ROOTS).map(|row| root(row, total.seconds)),
        by_root_omitted = (told.saturating_sub(ROOTS) as u64).saturating_add(blame.table.other_keys),
        episodes[] = episodes.iter().map(|one| episode(blame, one)),
        episodes_omitted = (count.saturating_sub(EPISODES) as u64).saturating_add(blame.table.forgotten.0),
    ))
}

/// Sessions that already waited at the first snapshot.
fn before(before: blame::Before) -> impl Json {
    object!(before; sessions, longest, seconds)
}

fn root(row: &blame::Row, total: f64) -> Option<impl Json> {
    let (key, sums) = (row.keys.first()?, &row.sums);
    Some(object!(
        key;
        application,
        role,
        database,
        doing,
        statement,
        lock,
        query_tag = key.tag,
        seconds = sums.seconds,
        standard_error = sums.standard_error(),
        share = if total > 0.0 { sums.seconds / total } else { 0.0 },
        waits = sums.waits,
        most = sums.most,
        episodes = row.episodes,
    ))
}

fn episode(blame: &blame::Blame, episode: &blame::Episode) -> impl Json {
    let sums = &episode.sums;
    object!(
        episode;
        number,
        pid,
        backend_start,
        xact_start,
        who,
        lock,
        begin,
        last,
        goes_on = blame.goes_on(episode),
        seconds = sums.seconds,
        standard_error = sums.standard_error(),
        waits = sums.waits,
        most = sums.most,
        ending,
        note,
        ran[] = episode.ran.iter().map(|ran| {
            object!(ran; at, statement, in_line = Some(ran.in_line).filter(|pid| *pid != 0))
        }),
    )
}
