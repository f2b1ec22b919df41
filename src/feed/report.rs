mod ddl;
mod log;
mod tasks;

use std::ops::Range;
use std::sync::Arc;

use chrono::TimeDelta;
use rustc_hash::FxHashSet;

use super::history::NotThere;
use super::record::redact::Redaction;
use super::replay::Recording;
use super::view_builder::{Recount, ViewBuilder};
use crate::model::Timestamp;
use crate::model::blame::{Blame, BlameTotals, WaitsBefore};
use crate::model::disclosure::Channel;
use crate::model::event::{Event, EventKind};
use crate::model::finding::{Finding, Severity};
use crate::model::past::{Incident, KeptObservation};
use crate::model::snapshot::Server;
use crate::model::view::{TargetId, View};
use crate::model::wait_graph::Party;
use crate::model::why::why;
use crate::order::SortExt;
use crate::output::report::{Hole, IncidentReport, Mark, TimelineColumn, Tree, Why, Worst};
use crate::text::one_line;
use ddl::Ddl;
use tasks::TaskIncidents;

pub use log::add_log;

const COLUMNS: usize = 160;

/// The sign of a user's note.
const NOTE: char = 'n';

const MARKS: usize = 1_000;

/// A gap between snapshots is reported from this multiple of the interval on.
const MISSING: f64 = 3.0;

/// Most waits at the worst moment that are explained.
const WHY: usize = 8;

/// Seconds shown before and after an episode.
const AROUND: i64 = 30;

/// The snapshots of an episode and some around it. `None` if there is no such episode. If several runs of a recorder have
/// an episode of this number, the last one is used.
pub fn of_episode(recording: &mut Recording, number: u64) -> Result<Option<Range<usize>>, NotThere> {
    let mut found: Option<(Timestamp, Timestamp)> = None;
    let mut reader = ReportReader::default();
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

#[derive(Debug, Default)]
struct ReportReader {
    recount: Option<Recount>,
}

impl ReportReader {
    fn read(
        &mut self,
        recording: &mut Recording,
        place: usize,
    ) -> Result<(Arc<Blame>, Vec<Event>), NotThere> {
        let (blame, events) = recording.glance(place)?;
        if let Some(blame) = blame {
            return Ok((blame, events));
        }
        let recount = self.recount.get_or_insert_with(|| Recount::new(recording.refresh()));
        Ok((recount.count(&*recording.view(place)?), events))
    }
}

pub type DrawTree = fn(&View) -> Tree;

/// The report of some snapshots; `chains` renders the wait tree of the worst one.
pub fn of(
    recording: &mut Recording,
    places: Range<usize>,
    redaction: Option<Redaction>,
    chains: DrawTree,
) -> Result<IncidentReport, NotThere> {
    let moments = recording.moments().get(places.clone()).unwrap_or_default().to_vec();
    let (first, last) = moments.first().zip(moments.last()).ok_or(NotThere::Nothing)?;
    let redaction = redaction.unwrap_or_default();
    let snapshots: Vec<Timestamp> = moments.iter().map(|moment| moment.at).collect();
    let mut report = IncidentReport {
        from: first.at,
        to: last.at,
        refresh: recording.refresh(),
        columns: columns(first.at, last.at, snapshots.len()),
        holes: holes(&snapshots, recording.refresh()),
        snapshots,
        ..IncidentReport::default()
    };
    if let Some(about) = recording.about() {
        report.target = one_line(&about.target).into_owned();
        report.program = one_line(&about.program).into_owned();
        report.redaction.clone_from(&about.redaction);
    }
    let view = |recording: &mut Recording, place: usize| view_of(recording, place, redaction);
    let mut tasks = TaskIncidents::default();
    let at_first = view(recording, places.start);
    if let Some(view) = &at_first {
        tasks.begin(view);
    }
    let (mut reader, mut window, mut seen) =
        (ReportReader::default(), BlameTotals::default(), FxHashSet::default());
    let mut ddl = Ddl::new(redaction);
    for (place, moment) in places.clone().zip(&moments) {
        let Ok((counted, events)) = reader.read(recording, place) else {
            report.damaged += 1;
            if let Some(column) = column_of(&mut report, moment.at) {
                column.is_damaged = true;
            }
            continue;
        };
        window.take(&counted);
        ddl.add_snapshot(recording, (place, moment.waiting));
        if let Some(column) = column_of(&mut report, moment.at) {
            let roots = counted.last.costs.iter().filter(|cost| cost.sums.most > 0).count();
            if !column.is_known || moment.waiting > column.waiting {
                let costs = window.last().costs.iter().filter(|cost| cost.sums.most > 0);
                column.behind = costs.map(|cost| (cost.episode, cost.sums.most)).collect();
            }
            column.is_known = true;
            column.waiting = column.waiting.max(moment.waiting);
            column.roots = column.roots.max(u32::try_from(roots).unwrap_or(u32::MAX));
        }
        for event in events {
            if event.seen >= first.at && event.seen <= last.at && seen.insert((event.number, event.seen)) {
                let event = redaction.event(event);
                tasks.event(&event);
                note(&mut report, &event);
            }
        }
    }
    report.tasks = tasks.end(view(recording, places.end.saturating_sub(1)).as_deref());
    report.actions.order_by_key(|action| action.at);
    report.is_counted_anew = reader.recount.is_some();
    report.blame = redaction.apply_to_blame(&window.blame());
    report.blame.before = at_first.map(|view| WaitsBefore::of(&view.graph, first.at)).unwrap_or_default();
    fill(&mut report.columns, &report.holes);
    report.tries = ddl.tries();
    let most = moments.iter().zip(places).max_by_key(|(moment, place)| (moment.waiting, *place));
    if let Some((moment, place)) = most {
        add_snapshot(&mut report, recording, (place, moment.waiting), redaction, chains);
    }
    if let Some((place, pid)) = ddl.longest()
        && let Some(view) = view(recording, place)
    {
        report.settings.extend(ddl::lock_timeout(&view, pid, redaction.mode()));
    }
    Ok(report)
}

fn columns(from: Timestamp, to: Timestamp, snapshots: usize) -> Vec<TimelineColumn> {
    let count = i32::try_from(COLUMNS.min(snapshots).max(1)).unwrap_or(1);
    let step = (to - from) / count;
    (0..count)
        .map(|column| TimelineColumn { at: from + step * column, ..TimelineColumn::default() })
        .collect()
}

fn column_of(report: &mut IncidentReport, at: Timestamp) -> Option<&mut TimelineColumn> {
    let place = report.columns.partition_point(|column| column.at <= at);
    report.columns.get_mut(place.saturating_sub(1))
}

/// Fills columns without a snapshot with the values of the column before, except in gaps and damaged parts.
fn fill(columns: &mut [TimelineColumn], holes: &[Hole]) {
    let mut before = TimelineColumn::default();
    for column in columns {
        let is_hole = holes.iter().any(|hole| hole.from < column.at && column.at < hole.to);
        if !column.is_known && !column.is_damaged && !is_hole && before.is_known {
            column.behind.clone_from(&before.behind);
            (column.waiting, column.roots, column.is_known) = (before.waiting, before.roots, true);
        }
        before = column.clone();
    }
}

/// Gaps of several polls between two snapshots.
fn holes(snapshots: &[Timestamp], refresh: f64) -> Vec<Hole> {
    let pairs = snapshots.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)));
    let is_long =
        |(from, to): &(Timestamp, Timestamp)| (*to - *from).as_seconds_f64() > MISSING * refresh.max(1.0);
    pairs.filter(is_long).map(|(from, to)| Hole { from, to }).collect()
}

fn note(report: &mut IncidentReport, event: &Event) {
    if event.kind == EventKind::Deadlock && !event.more.is_empty() {
        report.victims.push((event.at, event.more.trim_start_matches("; ").to_owned()));
    }
    let trouble = Incident::of(event.kind);
    let sign = trouble.map_or(if event.kind == EventKind::Note { NOTE } else { '·' }, Incident::sign);
    let mark = Mark { at: event.at, sign, text: event.text() };
    match event.kind {
        // Actions outside locktop are visible when they change a table.
        EventKind::ActionAsked
        | EventKind::ActionResult
        | EventKind::TaskRecovered
        | EventKind::TaskSwitched => {
            report.actions.push(mark.clone());
        }
        EventKind::SectionStale => report.stale.push(mark.clone()),
        _ => {}
    }
    if trouble.is_none() && event.kind != EventKind::Note {
        return;
    }
    if let Some(column) = column_of(report, event.at) {
        // The order of troubles is that of severity.
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

fn rank(sign: char) -> Option<Incident> {
    let all = [Incident::Action, Incident::NoAnswer, Incident::Begun, Incident::Deadlock];
    all.into_iter().find(|trouble| trouble.sign() == sign)
}

fn view_of(recording: &mut Recording, place: usize, redaction: Redaction) -> Option<Arc<View>> {
    let mut kept: KeptObservation = recording.read(place).ok()?;
    redaction.apply_to_recorded(&mut kept);
    Some(ViewBuilder::view_of(kept, TargetId::default(), &recording.thresholds()))
}

/// Adds the worst moment, with the most waiting sessions: wait tree, findings, server and helpful settings.
fn add_snapshot(
    report: &mut IncidentReport,
    recording: &mut Recording,
    (place, waiting): (usize, u32),
    redaction: Redaction,
    chains: DrawTree,
) {
    let Some(view) = view_of(recording, place, redaction) else { return };
    let Some(snapshot) = view.snapshot.as_deref() else { return };
    if let Some(server) = snapshot.server() {
        report.server = server_words(server);
        // With hashed names, the place would consist of hashes.
        if report.redaction != "names" {
            report.place = place_of(server);
        }
    }
    if waiting > 0 {
        let findings = view.findings.iter().filter(|finding| finding.severity > Severity::Info);
        let line = |finding: &Finding| {
            let about = finding.about_in(Channel::Report(redaction.mode()));
            let about = if about.is_empty() { String::new() } else { format!(" · {about}") };
            one_line(&format!("{}{about}", finding.summary)).into_owned()
        };
        report.worst = Some(Worst {
            at: snapshot.taken_at,
            waiting,
            tree: chains(&view),
            findings: findings.map(line).collect(),
            why: in_words(&view),
        });
    }
    report.settings = ddl::settings(report, &view);
}

/// Explains the first waiter of each queue, those with the most sessions behind them first.
fn in_words(view: &View) -> Vec<Why> {
    let nodes = view.graph.tree.nodes.iter();
    let mut firsts: Vec<(usize, usize, u32, Party)> = nodes
        .filter_map(|node| {
            let (queue, place) = node.waits?;
            Some((queue, place, node.below, node.party))
        })
        .collect();
    firsts.order_by_key(|(queue, place, ..)| (*queue, *place));
    firsts.dedup_by_key(|(queue, ..)| *queue);
    firsts.order_by_key(|(_, _, below, _)| std::cmp::Reverse(*below));
    let said = firsts.into_iter().take(WHY).map(|(.., party)| Why {
        who: one_line(&who(view, party)).into_owned(),
        said: why(view, party).iter().map(|sentence| one_line(sentence).into_owned()).collect(),
    });
    said.filter(|why| !why.said.is_empty()).collect()
}

/// The process id with user and application, such as `4410 deploy@ci`.
fn who(view: &View, party: Party) -> String {
    let backend = view.snapshot.as_deref().and_then(|snapshot| view.index.backend(snapshot, party.pid()));
    crate::model::words::process(party.pid(), backend)
}

/// For example `PostgreSQL 17.2 primary, database shop`.
fn server_words(server: &Server) -> String {
    let role = if server.in_recovery { "standby" } else { "primary" };
    format!("PostgreSQL {} {role}, database {}", one_line(&server.version), one_line(&server.database))
}

/// `db1/shop` or `db1:5433/shop`; a socket is shown as localhost.
fn place_of(server: &Server) -> String {
    let host = if server.host.starts_with('/') { "localhost" } else { &*server.host };
    let port = if server.port == 5432 { String::new() } else { format!(":{}", server.port) };
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    one_line(&format!("{host}{port}/{}", server.database)).into_owned()
}

#[cfg(test)]
mod tests;
