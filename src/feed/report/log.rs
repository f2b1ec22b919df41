//! Adds the server log of the time of a report.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use chrono::TimeDelta;
use rustc_hash::FxHashMap;

use super::view_of;
use crate::feed::record::redact::Redaction;
use crate::feed::replay::Recording;
use crate::model::disclosure::{Channel, shown_text};
use crate::model::lock::LockMode;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::{Timestamp, words};
use crate::order::SortExt;
use crate::output::report::{
    IncidentReport, LogDeadlock, LogFile, LogReport, LogWait, Visibility, WaitEnd, WaitSums,
};
use crate::pg::server_log::{
    Deadlock, LogEntry, LogError, LogMessage, LoggedWait, StatementEnd, WaitKind, lock_tag, parse, read,
};
use crate::text::{one_line, one_line_prefix};

/// Most waits and lines, and most deadlocks.
const KEPT: usize = 1_000;
const DEADLOCKS: usize = 200;

/// Most sessions that wait at the same time; further ones in a file are ignored.
const OPEN: usize = 10_000;

/// Longest statement, in columns.
const STATEMENT: usize = 500;

const HOLDERS: usize = 5;

/// Snapshots to read for sessions and names.
const POLLS: usize = 8;

/// Two messages belong to the same wait if their starts differ by at most this many milliseconds.
const SAME: i64 = 100;

/// Adds log files to the report. They are read once, in the given order; memory use does not depend on their size. An error
/// includes the name of its file.
pub fn add_log(
    report: &mut IncidentReport,
    recording: &mut Recording,
    places: Range<usize>,
    files: &[impl AsRef<Path>],
    redaction: Option<Redaction>,
) -> Result<(), String> {
    let known = KnownViews::of(recording, places, redaction.unwrap_or_default());
    let is_off = |(_, snapshot): (&View, &Snapshot)| snapshot.server()?.log_lock_waits.map(|on| !on);
    let tells_no_waits = known.snapshots().filter_map(is_off).any(|off| off);
    let mut gather = Gather {
        redaction: stricter(&report.redaction, redaction),
        report,
        known,
        open: FxHashMap::default(),
        log: LogReport { tells_no_waits, ..LogReport::default() },
        same: 0,
        other: None,
    };
    for path in files {
        gather.file(path.as_ref())?;
    }
    report.log = Some(gather.end());
    Ok(())
}

/// A log contains full statements, so the redaction of the recording also applies to it.
fn stricter(recorded: &str, asked: Option<Redaction>) -> Redaction {
    match (recorded, asked.unwrap_or_default()) {
        (_, Redaction::Queries) | ("queries", _) => Redaction::Queries,
        (_, Redaction::None) if !matches!(recorded, "literals" | "names") => Redaction::None,
        _ => Redaction::Literals,
    }
}

struct KnownViews {
    views: Vec<Arc<View>>,
}

impl KnownViews {
    /// Reads the snapshot with the most waiting sessions, and some others from the first to the last.
    fn of(recording: &mut Recording, places: Range<usize>, redaction: Redaction) -> Self {
        let moments = recording.moments().get(places.clone()).unwrap_or_default();
        let most = moments.iter().zip(places.clone()).max_by_key(|(moment, _)| moment.waiting);
        let last = places.len().saturating_sub(1);
        let mut chosen: Vec<usize> = (0..=POLLS).map(|at| places.start + last * at / POLLS).collect();
        chosen.extend(most.map(|(_, place)| place));
        chosen.sort_unstable();
        chosen.dedup();
        let views = chosen.into_iter().filter_map(|place| view_of(recording, place, redaction));
        Self { views: views.collect() }
    }

    fn snapshots(&self) -> impl Iterator<Item = (&View, &Snapshot)> {
        self.views.iter().filter_map(|view| Some((&**view, view.snapshot.as_deref()?)))
    }

    /// The name of the lock, such as `accounts`; otherwise the text of the log.
    fn lock(&self, on: &str) -> String {
        let target = lock_tag(on).and_then(|tag| {
            let named = |(_, snapshot): &(&View, &Snapshot)| snapshot.names.relation(&tag).is_some();
            let (view, snapshot) = self.snapshots().find(named).or_else(|| self.snapshots().next())?;
            Some(words::target(snapshot, &view.lock_names, &tag, None))
        });
        one_line_prefix(target.as_deref().unwrap_or(on), 100).into_owned()
    }

    /// `4312 app@billing` if a snapshot shows that session; otherwise the process id.
    fn who(&self, pid: i32, at: Timestamp) -> String {
        // The last session with this process id that had started by then.
        let began = self.snapshots().filter_map(|(view, snapshot)| {
            let backend = view.index.backend(snapshot, pid)?;
            Some((backend.backend_start.filter(|start| *start <= at)?, backend))
        });
        words::process(pid, began.max_by_key(|(start, _)| *start).map(|(_, backend)| backend))
    }

    /// Whether the log entry's session matches a snapshot taken during that session. `None` if there is no such snapshot.
    fn agrees(&self, entry: &LogEntry<'_>) -> Option<Result<(), String>> {
        // The log has only the second of the start.
        let start = entry.session_start.filter(|_| !entry.user.is_empty())?;
        let there = (start + TimeDelta::seconds(1))..=entry.at;
        let has_session = |(_, snapshot): &(&View, &Snapshot)| {
            snapshot.backends.is_known() && there.contains(&snapshot.taken_at)
        };
        let (view, snapshot) = self.snapshots().find(has_session)?;
        let time = |at: Timestamp| at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        let (pid, taken_at) = (entry.pid, snapshot.taken_at);
        let Some(backend) = view.index.backend(snapshot, pid) else {
            return Some(Err(format!(
                "its process {pid} existed at {}, but is not in that snapshot",
                time(taken_at)
            )));
        };
        let seen = backend.backend_start?;
        if seen.timestamp() == start.timestamp() {
            return Some(Ok(()));
        }
        Some(Err(format!(
            "process {pid} began at {} according to the log, but at {} according to the snapshots",
            time(start),
            time(seen)
        )))
    }
}

/// A wait whose end is not known yet, with the start of its session: the process id can be reused.
#[derive(Clone)]
struct OpenWait(LogWait, Option<Timestamp>);

struct Gather<'a> {
    report: &'a IncidentReport,
    known: KnownViews,
    redaction: Redaction,
    open: FxHashMap<i32, OpenWait>,
    log: LogReport,
    /// Entries of the file whose sessions match the snapshots, and the first reason for a mismatch.
    same: u64,
    other: Option<String>,
}

impl Gather<'_> {
    /// Reads a file. Entries are discarded if the log belongs to another server.
    fn file(&mut self, path: &Path) -> Result<(), String> {
        let failed = |error: LogError| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| failed(error.into()))?;
        let before = (self.log.clone(), self.open.clone());
        (self.same, self.other) = (0, None);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        self.log.files.push(LogFile { name: one_line(&name).into_owned(), ..LogFile::default() });
        let read = read(BufReader::with_capacity(1 << 18, file), &mut |entry| self.entry(entry));
        let (format, passed) = read.map_err(failed)?;
        let Some(mut file) = self.log.files.pop() else { return Ok(()) };
        (file.format, file.damaged) = (format.as_str(), passed.damaged + passed.unzoned);
        file.is_other = self.other.take().filter(|_| self.same == 0);
        if file.is_other.is_some() {
            (self.log, self.open) = before;
        }
        self.log.files.push(file);
        Ok(())
    }

    fn entry(&mut self, entry: &LogEntry<'_>) {
        let is_within = (self.report.from..=self.report.to).contains(&entry.at);
        if let Some(file) = self.log.files.last_mut() {
            let (from, to) = file.span.unwrap_or((entry.at, entry.at));
            file.span = Some((from.min(entry.at), to.max(entry.at)));
            file.entries += u64::from(is_within);
        }
        self.log.is_foreign |= !is_english(&entry.severity);
        match self.known.agrees(entry) {
            Some(Ok(())) => self.same += 1,
            Some(Err(why)) => drop(self.other.get_or_insert(why)),
            None => {}
        }
        match parse(entry) {
            Some(LogMessage::Wait(wait)) => self.wait(entry, &wait),
            Some(LogMessage::Deadlock(deadlock)) => self.deadlock(entry, &deadlock, is_within),
            Some(LogMessage::Ended(how)) => self.ended(entry, how, is_within),
            None => {}
        }
    }

    fn wait(&mut self, entry: &LogEntry<'_>, wait: &LoggedWait<'_>) {
        #[expect(clippy::cast_possible_truncation, reason = "of a wait of centuries the begin is not known")]
        let length = TimeDelta::try_milliseconds((wait.after * 1000.0) as i64);
        let Some(begin) = length.and_then(|length| entry.at.checked_sub_signed(length)) else { return };
        let is_same = |open: &OpenWait| (open.0.begin - begin).abs() <= TimeDelta::milliseconds(SAME);
        let before = self.open.remove(&entry.pid);
        let (same, other) = match before {
            Some(open) if is_same(&open) => (Some(open), None),
            other => (None, other),
        };
        if let Some(other) = other {
            self.close(other, WaitEnd::NotTold);
        }
        let mut logged = self.logged(entry, wait, begin);
        // Possibly only one message names the holder.
        if let Some(same) = same.filter(|_| logged.0.behind.is_empty()) {
            logged.0.behind = same.0.behind;
        }
        match wait.kind {
            WaitKind::Still if self.open.len() < OPEN => drop(self.open.insert(entry.pid, logged)),
            WaitKind::Still => {}
            WaitKind::Acquired => self.close(logged, WaitEnd::Acquired),
            WaitKind::Failed => self.close(logged, WaitEnd::Gave("failed: deadlock")),
        }
    }

    fn logged(&self, entry: &LogEntry<'_>, wait: &LoggedWait<'_>, begin: Timestamp) -> OpenWait {
        let holders = wait.holders.iter().filter(|pid| **pid != entry.pid).take(HOLDERS);
        let holders: Vec<String> = holders.map(|pid| self.known.who(*pid, entry.at)).collect();
        let mode = LockMode::parse(wait.mode.as_bytes()).map(LockMode::short);
        let wait = LogWait {
            begin,
            seconds: wait.after,
            who: self.who(entry),
            mode: one_line_prefix(mode.unwrap_or(wait.mode), 40).into_owned(),
            on: self.known.lock(wait.on),
            behind: holders.join(", "),
            end: WaitEnd::NotTold,
            seen: Visibility::Hole,
            statement: self.statement(&entry.statement),
        };
        OpenWait(wait, entry.session_start)
    }

    fn close(&mut self, OpenWait(wait, _): OpenWait, end: WaitEnd) {
        let LogWait { begin, seconds, .. } = wait;
        #[expect(clippy::cast_possible_truncation, reason = "it was made of one")]
        let length = TimeDelta::try_milliseconds((seconds * 1000.0) as i64).unwrap_or_default();
        let last = begin.checked_add_signed(length).unwrap_or(begin);
        if begin > self.report.to || last < self.report.from {
            return;
        }
        let seen = self.seen(begin, last);
        let sums = if seen == Visibility::InLooks { &mut self.log.seen } else { &mut self.log.unseen };
        *sums = WaitSums { count: sums.count + 1, seconds: sums.seconds + seconds };
        self.log.waits.push(LogWait { end, seen, ..wait });
        if self.log.waits.len() >= 2 * KEPT {
            self.keep_longest();
        }
    }

    fn keep_longest(&mut self) {
        self.log.waits.order_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.begin.cmp(&b.begin)));
        self.log.waits.truncate(KEPT);
    }

    /// Whether a snapshot was taken during a wait.
    fn seen(&self, begin: Timestamp, end: Timestamp) -> Visibility {
        let IncidentReport { snapshots, holes, .. } = self.report;
        let first = snapshots.partition_point(|at| *at < begin);
        if snapshots.get(first).is_some_and(|at| *at <= end) {
            return Visibility::InLooks;
        }
        let is_hole = holes.iter().any(|hole| hole.from <= begin && end <= hole.to);
        if is_hole || first == 0 || first == snapshots.len() { Visibility::Hole } else { Visibility::Between }
    }

    fn deadlock(&mut self, entry: &LogEntry<'_>, deadlock: &Deadlock<'_>, is_within: bool) {
        self.gives_up(entry, "deadlock");
        if !is_within {
            return;
        }
        if self.log.deadlocks.len() >= DEADLOCKS {
            self.log.deadlocks_omitted += 1;
            return;
        }
        let lines = deadlock.waits.iter().enumerate().map(|(at, party)| {
            let known = LockMode::parse(party.mode.as_bytes()).map(LockMode::short);
            let mode = known.unwrap_or(party.mode);
            let ran = deadlock.statements.get(at).map(|statement| format!(": {}", self.statement(statement)));
            let line = format!(
                "{} waited for {mode} on {}, behind {}{}",
                self.known.who(party.pid, entry.at),
                self.known.lock(party.on),
                self.known.who(party.behind, entry.at),
                ran.unwrap_or_default()
            );
            one_line_prefix(&line, STATEMENT).into_owned()
        });
        let waits = lines.take(HOLDERS * 4).collect();
        let (victim, statement) = (self.who(entry), self.statement(&entry.statement));
        self.log.deadlocks.push(LogDeadlock { at: entry.at, victim, statement, waits });
    }

    fn ended(&mut self, entry: &LogEntry<'_>, how: StatementEnd, is_within: bool) {
        self.gives_up(entry, how.words());
        if !is_within {
            return;
        }
        if self.log.ended.len() >= KEPT {
            self.log.ended_omitted += 1;
            return;
        }
        let statement = self.statement(&entry.statement);
        let ran = if statement.is_empty() { String::new() } else { format!(": {statement}") };
        self.log.ended.push((entry.at, format!("{} {}{ran}", self.who(entry), how.words())));
    }

    /// A canceled or terminated session no longer waits.
    fn gives_up(&mut self, entry: &LogEntry<'_>, why: &'static str) {
        let Some(mut open) = self.open.remove(&entry.pid) else { return };
        if open.1 != entry.session_start {
            return self.close(open, WaitEnd::NotTold);
        }
        open.0.seconds = (entry.at - open.0.begin).as_seconds_f64().max(open.0.seconds);
        self.close(open, WaitEnd::Gave(why));
    }

    /// The process id with user and application, such as `4410 deploy@ci`; from snapshots if the entry has neither.
    fn who(&self, entry: &LogEntry<'_>) -> String {
        let who = match (&*entry.user, &*entry.application) {
            ("", "") => return self.known.who(entry.pid, entry.at),
            (user, "") => user.to_owned(),
            ("", application) => application.to_owned(),
            (user, application) => format!("{user}@{application}"),
        };
        format!("{} {}", entry.pid, one_line_prefix(&who, 80))
    }

    fn statement(&self, statement: &str) -> String {
        if statement.is_empty() {
            return String::new();
        }
        one_line_prefix(&shown_text(Channel::Report(self.redaction.mode()), statement), STATEMENT)
            .into_owned()
    }

    fn end(mut self) -> LogReport {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.order_by_key(|(pid, _)| *pid);
        for (_, open) in open {
            self.close(open, WaitEnd::NotTold);
        }
        self.keep_longest();
        self.log.deadlocks.order_by_key(|deadlock| deadlock.at);
        self.log.ended.order_by_key(|(at, _)| *at);
        self.log
    }
}

/// Whether messages are in English, the only language in which waits are recognized.
fn is_english(severity: &str) -> bool {
    matches!(severity, "LOG" | "INFO" | "NOTICE" | "WARNING" | "ERROR" | "FATAL" | "PANIC")
        || severity.starts_with("DEBUG")
}
