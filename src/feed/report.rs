//! From a part of a recording to what a report has to say.

use std::ops::Range;
use std::sync::Arc;

use chrono::TimeDelta;
use rustc_hash::FxHashSet;

use super::digest::Digest;
use super::history::NotThere;
use super::record::redact::Redaction;
use super::recount::Recount;
use super::replay::Recording;
use crate::model::Timestamp;
use crate::model::blame::{Blame, Episode, Span, Window};
use crate::model::event::{Event, Kind};
use crate::model::finding::Severity;
use crate::model::lock::LockMode;
use crate::model::snapshot::Server;
use crate::model::timeline::Trouble;
use crate::model::view::{TargetId, View};
use crate::text::{duration, one_line, one_line_prefix};
use crate::wire::report::{Column, Hole, Mark, Report, Setting, Worst};
use crate::wire::table;

/// Columns of the time line.
const COLUMNS: usize = 240;

/// Marks that are kept.
const MARKS: usize = 1_000;

/// Looks that are missing between two, from which on that is told.
const MISSING: f64 = 3.0;

/// Seconds that are shown before an episode and after it.
const AROUND: i64 = 30;

/// Seconds after which a transaction that does nothing and blocks others should end.
const IDLE: f64 = 40.0;

/// Seconds for which a change of a table should wait.
const PATIENCE: f64 = 2.0;

/// The looks during which there was an episode, and some around them; none where there was no such episode. Of several runs of a
/// recorder the last counts that had one of that number.
///
/// # Errors
/// When nothing can be read.
pub fn of_episode(recording: &mut Recording, number: u64) -> Result<Option<Range<usize>>, NotThere> {
    let mut found: Option<(Timestamp, Timestamp)> = None;
    let mut reader = Reader::default();
    for place in 0..recording.moments().len() {
        let Ok((counted, _)) = reader.read(recording, place) else { continue };
        let is_here = counted.last.costs.iter().any(|cost| cost.episode == number);
        if let Some(episode) = counted.episode(number).filter(|_| is_here) {
            found = Some((episode.begin, episode.last));
        }
    }
    let around = TimeDelta::seconds(AROUND);
    Ok(found.map(|(begin, last)| {
        let moments = recording.moments();
        let first = moments.partition_point(|moment| moment.at < begin - around);
        first..moments.partition_point(|moment| moment.at <= last + around).max(first)
    }))
}

/// Reads what was counted, or counts where that was not kept.
#[derive(Debug, Default)]
struct Reader {
    /// Looks were counted anew.
    anew: Option<Recount>,
}

impl Reader {
    fn read(
        &mut self,
        recording: &mut Recording,
        place: usize,
    ) -> Result<(Arc<Blame>, Vec<Event>), NotThere> {
        let (blame, events) = recording.glance(place)?;
        if let Some(blame) = blame {
            return Ok((blame, events));
        }
        let anew = self.anew.get_or_insert_with(|| Recount::new(recording.refresh()));
        Ok((anew.count(&*recording.view(place)?), events))
    }
}

/// What the looks of some places have to say.
///
/// # Errors
/// When there is none of them, or none can be read.
pub fn of(
    recording: &mut Recording,
    places: Range<usize>,
    redaction: Option<Redaction>,
) -> Result<Report, NotThere> {
    let moments = recording.moments().get(places.clone()).unwrap_or_default().to_vec();
    let (first, last) = moments.first().zip(moments.last()).ok_or(NotThere::Nothing)?;
    let redaction = redaction.unwrap_or_default();
    let mut report = Report {
        from: first.at,
        to: last.at,
        looks: moments.len(),
        refresh: recording.refresh(),
        columns: columns(first.at, last.at, moments.len()),
        holes: holes(&moments.iter().map(|moment| moment.at).collect::<Vec<_>>(), recording.refresh()),
        ..Report::default()
    };
    if let Some(about) = recording.about() {
        report.target = one_line(&about.target).into_owned();
        report.program = one_line(&about.program).into_owned();
        report.redaction.clone_from(&about.redaction);
    }
    let (mut reader, mut window, mut seen) = (Reader::default(), Window::default(), FxHashSet::default());
    for (place, moment) in places.clone().zip(&moments) {
        let Ok((counted, events)) = reader.read(recording, place) else {
            report.damaged += 1;
            continue;
        };
        window.take(&counted);
        if let Some(column) = column_of(&mut report, moment.at) {
            let roots = counted.last.costs.iter().filter(|cost| cost.sums.most > 0).count();
            column.waiting = column.waiting.max(moment.waiting);
            column.roots = column.roots.max(u32::try_from(roots).unwrap_or(u32::MAX));
        }
        for event in events {
            if event.seen >= first.at && event.seen <= last.at && seen.insert((event.number, event.seen)) {
                note(&mut report, &redaction.event(event));
            }
        }
    }
    report.is_counted_anew = reader.anew.is_some();
    report.blame = redaction.apply_to_blame(&window.blame());
    let most =
        moments.iter().zip(places).max_by_key(|(moment, place)| (moment.waiting, std::cmp::Reverse(*place)));
    if let Some((moment, place)) = most {
        look(&mut report, recording, (place, moment.waiting), redaction);
    }
    Ok(report)
}

/// Columns of the same length, from the first look to the last.
fn columns(from: Timestamp, to: Timestamp, looks: usize) -> Vec<Column> {
    let count = i32::try_from(COLUMNS.min(looks).max(1)).unwrap_or(1);
    let step = (to - from) / count;
    (0..count).map(|column| Column { at: from + step * column, ..Column::default() }).collect()
}

fn column_of(report: &mut Report, at: Timestamp) -> Option<&mut Column> {
    let place = report.columns.partition_point(|column| column.at <= at);
    report.columns.get_mut(place.saturating_sub(1))
}

/// Times in which nobody looked.
fn holes(looks: &[Timestamp], refresh: f64) -> Vec<Hole> {
    let pairs = looks.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
    let is_long =
        |(from, to): &(Timestamp, Timestamp)| (*to - *from).as_seconds_f64() > MISSING * refresh.max(1.0);
    pairs.filter(is_long).map(|(from, to)| Hole { from, to }).collect()
}

/// Puts an event where it belongs.
fn note(report: &mut Report, event: &Event) {
    let trouble = Trouble::of(event.kind);
    let sign = trouble.map_or('·', Trouble::sign);
    let mark = Mark { at: event.at, sign, text: event.text() };
    match event.kind {
        Kind::ActionAsked | Kind::ActionResult => report.actions.push(mark.clone()),
        Kind::SectionStale => report.stale.push(mark.clone()),
        _ => {}
    }
    if trouble.is_none() {
        return;
    }
    if let Some(column) = column_of(report, event.at) {
        // What is worse comes later in the order of troubles.
        let worse = |sign: Option<char>| sign.is_none_or(|sign| rank(sign) < rank(mark.sign));
        if worse(column.sign) {
            column.sign = Some(mark.sign);
        }
    }
    if report.marks.len() < MARKS {
        report.marks.push(mark);
    } else {
        report.marks_omitted += 1;
    }
}

fn rank(sign: char) -> Option<Trouble> {
    let all = [Trouble::Action, Trouble::NoAnswer, Trouble::Begun, Trouble::Deadlock];
    all.into_iter().find(|trouble| trouble.sign() == sign)
}

/// What the look says at which most waited: the chain, what was wrong, the server, and what would have helped.
fn look(
    report: &mut Report,
    recording: &mut Recording,
    (place, waiting): (usize, u32),
    redaction: Redaction,
) {
    let Ok(mut kept) = recording.read(place) else { return };
    redaction.apply_to_kept(&mut kept);
    let view = Digest::view_of(kept, TargetId::default(), &recording.thresholds());
    let Some(snapshot) = view.snapshot.as_deref() else { return };
    if let Some(server) = snapshot.server() {
        report.server = server_words(server);
    }
    if waiting > 0 {
        let findings = view.findings.iter().filter(|finding| finding.severity > Severity::Info);
        let line = |finding: &crate::model::finding::Finding| match &*finding.about {
            "" => one_line(&finding.summary).into_owned(),
            about => one_line(&format!("{} · {about}", finding.summary)).into_owned(),
        };
        report.worst = Some(Worst {
            at: snapshot.taken_at,
            waiting,
            chain: table::chains(&view, None).unwrap_or_default(),
            findings: findings.map(line).collect(),
        });
    }
    report.settings = settings(report, &view);
}

/// `PostgreSQL 17.2 primary`
fn server_words(server: &Server) -> String {
    let role = if server.in_recovery { "standby" } else { "primary" };
    format!("PostgreSQL {} {role}, database {}", one_line(&server.version), one_line(&server.database))
}

/// What would have helped, and only that.
fn settings(report: &Report, view: &View) -> Vec<Setting> {
    let mut found = Vec::new();
    let episodes = report.blame.episodes_in(Span::All);
    let idle = |episode: &&Episode| {
        episode.keys.iter().any(|key| &*key.doing == "idle in xact") && episode.length() > IDLE
    };
    if let Some(worst) = episodes.filter(idle).max_by(|a, b| a.sums.seconds.total_cmp(&b.sums.seconds)) {
        let limit = if worst.length() > 3.0 * IDLE { "1min" } else { "30s" };
        let advice = format!(
            "{} did nothing in its transaction and blocked others for {}; with '{limit}' for its role the server would have ended it by itself",
            worst.pid,
            duration(worst.length()),
        );
        found.push(Setting { name: "idle_in_transaction_session_timeout", value: None, advice });
    }
    found.extend(lock_timeout(view));
    let Some(server) = view.snapshot.as_deref().and_then(|snapshot| snapshot.server()) else { return found };
    if u64::from(server.connections) * 10 >= u64::from(server.max_connections) * 9 {
        let advice = format!(
            "{} were in use at the worst moment: sessions that wait take connections; a pooler, or lock_timeout, keeps some free",
            server.connections
        );
        let value = Some(server.max_connections.to_string());
        found.push(Setting { name: "max_connections", value, advice });
    }
    let statements = report.blame.table.episodes.iter().flat_map(|episode| &episode.ran);
    let kept = usize::try_from(server.query_size).unwrap_or(usize::MAX).saturating_sub(1);
    // Longer ones are cut here.
    if kept > 0 && kept < 500 && statements.into_iter().any(|ran| ran.statement.len() >= kept) {
        found.push(Setting {
            name: "track_activity_query_size",
            value: Some(server.query_size.to_string()),
            advice: "statements were cut by the server; it takes a restart to keep more of them".to_owned(),
        });
    }
    found
}

/// Somebody who waits for a whole table stands in the way of others.
fn lock_timeout(view: &View) -> Option<Setting> {
    let (graph, snapshot) = (&view.graph, view.snapshot.as_deref()?);
    let wide = graph.tree.nodes.iter().filter_map(|node| {
        let (queue, at) = node.waits?;
        let waiter = graph.queues.get(queue)?.waiters.get(at)?;
        let since = waiter.wait_start?;
        let seconds = (snapshot.taken_at - since).as_seconds_f64();
        let is_wide = waiter.mode == LockMode::AccessExclusive && node.below > 0 && seconds > PATIENCE;
        is_wide.then_some((waiter.pid, node.below, seconds))
    });
    let (pid, below, seconds) = wide.max_by_key(|(_, below, _)| *below)?;
    let backend = view.index.backend(snapshot, pid);
    let query = backend.and_then(|backend| backend.query.as_deref()).unwrap_or_default();
    let advice = format!(
        "{pid} waited {} for AccessExclusive ({}), and {below} behind it; with '2s' and another try it would have let them pass",
        duration(seconds),
        one_line_prefix(query, 80),
    );
    Some(Setting { name: "lock_timeout", value: None, advice })
}

#[cfg(test)]
mod tests;
