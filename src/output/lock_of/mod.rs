//! `locktop lock-of`: the locks that statements take and the sessions that conflict now, as text for people and as JSON for
//! programs.

mod json;
#[cfg(test)]
mod tests;
mod text;
mod words;

use std::sync::Arc;

pub use json::json;
pub use text::text;

use crate::model::backend::Backend;
use crate::model::lock_of::{Meeting, Resolution, Want, meeting, wants};
use crate::model::statement::script::{Problem, Script, script, with_prepared};
use crate::model::statement::{Act, Nowait, Statement, StatementLock, StatementPiece, StatementTarget};
use crate::model::view::View;
use crate::model::{Text, Timestamp};

#[derive(Debug)]
pub struct LockOfState {
    pub view: Arc<View>,
    pub target: String,
    pub places: Vec<(StatementTarget, Resolution)>,
}

#[derive(Debug)]
pub struct LockOfReport {
    pieces: Vec<StatementPiece>,
    script: Script,
    /// `None` if no server was asked.
    now: Option<LockOfState>,
    met: Vec<Vec<Option<Meeting>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It takes no lock, and nothing about it is unknown: BEGIN, SET.
    Nothing,
    /// No session conflicts, or no server was asked.
    Free,
    Waits,
    /// It would fail or return false instead of waiting: NOWAIT, `pg_try_advisory_lock`.
    Refused,
    /// Why it would fail before it waits, or is not known.
    Unknown(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No session conflicts with the statements that could be judged, or no server was asked.
    Free,
    Waits,
    /// No statement could be judged.
    Unknown,
}

pub fn targets(pieces: &[StatementPiece]) -> Vec<StatementTarget> {
    let mut targets: Vec<StatementTarget> = Vec::new();
    for take in
        pieces.iter().filter_map(|piece| piece.read.as_ref().ok()).flat_map(|statement| &statement.takes)
    {
        if !targets.contains(&take.target) {
            targets.push(take.target.clone());
        }
    }
    targets
}

impl LockOfReport {
    /// `single`: the statements run as one transaction.
    pub fn new(pieces: Vec<StatementPiece>, single: bool, now: Option<LockOfState>) -> Self {
        let pieces = with_prepared(pieces);
        let script = script(&pieces, single);
        let mut report = Self { pieces, script, now, met: Vec::new() };
        report.met = (0..report.pieces.len()).map(|number| report.meetings(number)).collect();
        report
    }

    fn statement(&self, number: usize) -> Option<&Statement> {
        self.pieces.get(number)?.read.as_ref().ok()
    }

    fn meetings(&self, number: usize) -> Vec<Option<Meeting>> {
        let (Some(now), Some(statement)) = (&self.now, self.statement(number)) else { return Vec::new() };
        let meet = |take: &StatementLock| {
            now.place(&take.target)?;
            Some(meeting(&now.view, statement, &self.wants(statement, take)))
        };
        statement.takes.iter().map(meet).collect()
    }

    fn wants(&self, statement: &Statement, take: &StatementLock) -> Vec<Want<'_>> {
        let Some(now) = &self.now else { return Vec::new() };
        let place = now.place(&take.target);
        place.map(|place| wants(statement, take, place, now.version())).unwrap_or_default()
    }

    fn met(&self, number: usize) -> impl Iterator<Item = &Meeting> {
        self.met.get(number).into_iter().flatten().flatten()
    }

    /// The first server version that has the statement, if this server lacks it.
    fn lacks(&self, statement: &Statement) -> Option<u32> {
        let version = self.now.as_ref()?.version();
        Some(statement.since()).filter(|since| *since > version && version > 0)
    }

    /// Index of the earlier statement that creates what this one takes.
    fn creator(&self, number: usize, take: &StatementLock) -> Option<usize> {
        let relation = take.relation()?;
        let is_it = |created: &crate::model::statement::Relation| {
            created.name == relation.name
                && (created.schema == relation.schema
                    || created.schema.is_none()
                    || relation.schema.is_none())
        };
        (0..number).rev().find(|at| self.statement(*at).is_some_and(|one| one.created.iter().any(is_it)))
    }

    fn missing(&self, number: usize, statement: &Statement) -> Option<String> {
        let now = self.now.as_ref()?;
        let is_missing = |take: &&StatementLock| {
            let may_be = take.is_optional || statement.if_exists || self.creator(number, take).is_some();
            matches!(now.place(&take.target), Some(Resolution::Missing(_))) && !may_be
        };
        statement.takes.iter().find(is_missing).map(|take| words::missing(now, &take.target))
    }

    pub fn judge(&self, number: usize) -> Judgement {
        let statement = match self.pieces.get(number).map(|piece| &piece.read) {
            Some(Ok(statement)) => statement,
            Some(Err(unknown)) => return Judgement::Unknown(unknown.to_string()),
            None => return Judgement::Nothing,
        };
        let unknown = |why: &str| Judgement::Unknown(why.to_owned());
        if let Some(problem) = self.script.steps.get(number).and_then(|step| step.problem) {
            return unknown(words::problem(problem));
        }
        if let Some(since) = self.lacks(statement) {
            return Judgement::Unknown(format!("PostgreSQL {since} and later have it"));
        }
        if let Some(missing) = self.missing(number, statement) {
            return Judgement::Unknown(missing);
        }
        let takes = statement.takes.iter().zip(self.met.get(number).into_iter().flatten());
        let met = takes.flat_map(|(take, met)| {
            let tries = tries(take, statement);
            met.iter().flat_map(|met| &met.in_the_way).map(move |one| (tries, one.may))
        });
        let met: Vec<(bool, bool)> = met.collect();
        for (found, judgement) in [
            ((false, false), Judgement::Waits),
            ((true, false), Judgement::Refused),
            ((false, true), unknown("it may wait: which of these it locks depends on its rows and its plan")),
            ((true, true), unknown("it may fail: which of these it locks depends on its rows and its plan")),
        ] {
            if met.contains(&found) {
                return judgement;
            }
        }
        match self.unseen(statement, number).or_else(|| self.connected(statement)) {
            Some(why) => Judgement::Unknown(why),
            None if statement.takes.is_empty() => Judgement::Nothing,
            None => Judgement::Free,
        }
    }

    /// Why the result is not known although no conflicting session is visible.
    fn unseen(&self, statement: &Statement, number: usize) -> Option<String> {
        if let [first, ..] = statement.unseen[..] {
            return Some(format!("not known from its text: {first}"));
        }
        let now = self.now.as_ref()?;
        if let Some(take) =
            statement.takes.iter().find(|take| now.place(&take.target) == Some(&Resolution::NotSearched))
        {
            return Some(words::not_searched(&take.target));
        }
        let omitted = now.view.snapshot.as_deref().map_or(0, |snapshot| snapshot.locks_omitted);
        if omitted > 0 && !statement.takes.is_empty() {
            return Some(format!("{omitted} of the locks of the server were not read"));
        }
        let is_read = now.view.snapshot.as_deref().is_some_and(|snapshot| snapshot.backends.is_known());
        if statement.waits_for_snapshots() && !is_read {
            return Some("pg_stat_activity was not read: older snapshots are not known".to_owned());
        }
        let hidden: usize = self.met(number).map(|met| met.hidden).sum();
        (hidden > 0).then(|| {
            format!("the role cannot see whether {hidden} sessions have older snapshots: GRANT pg_monitor TO the role")
        })
    }

    /// Why DROP DATABASE fails although nothing blocks it (`CountOtherDBBackends` in `src/backend/storage/ipc/procarray.c`).
    fn connected(&self, statement: &Statement) -> Option<String> {
        let snapshot = self.now.as_ref()?.view.snapshot.as_deref()?;
        let StatementTarget::Object(object) = &statement.takes.first()?.target else { return None };
        if statement.name != "DROP DATABASE" {
            return None;
        }
        if !snapshot.backends.is_known() {
            return Some("pg_stat_activity was not read: sessions of the database are not known".to_owned());
        }
        let is_it = |database: Option<&Text>| database.is_some_and(|database| **database == *object.name);
        // It terminates autovacuum workers itself.
        let is_there = |backend: &&Backend| {
            is_it(backend.database.as_ref()) && backend.backend_type.as_deref() != Some("autovacuum worker")
        };
        let sessions = snapshot.backends.last_rows().iter().filter(is_there).count();
        let prepared =
            snapshot.prepared.last_rows().iter().filter(|row| is_it(row.database.as_ref())).count();
        let counted =
            [(sessions, "session", "sessions"), (prepared, "prepared transaction", "prepared transactions")];
        let counted = counted.into_iter().filter(|(number, ..)| *number > 0);
        let parts: Vec<String> = counted
            .map(|(number, one, many)| format!("{number} {}", if number == 1 { one } else { many }))
            .collect();
        (!parts.is_empty()).then(|| format!("it fails: the database has {}", parts.join(" and ")))
    }

    /// The result for all statements: a conflict takes precedence; unknown only if nothing could be judged.
    pub fn verdict(&self) -> Verdict {
        let all: Vec<Judgement> = (0..self.pieces.len()).map(|number| self.judge(number)).collect();
        let any = |is: fn(&Judgement) -> bool| all.iter().any(is);
        match () {
            () if any(|one| matches!(one, Judgement::Waits | Judgement::Refused)) => Verdict::Waits,
            () if any(|one| *one == Judgement::Free) => Verdict::Free,
            () if any(|one| matches!(one, Judgement::Unknown(_))) || all.is_empty() => Verdict::Unknown,
            () => Verdict::Free,
        }
    }

    fn numbers(&self, is: impl Fn(&Judgement) -> bool) -> Vec<usize> {
        (0..self.pieces.len()).filter(|number| is(&self.judge(*number))).collect()
    }

    fn problem(&self, number: usize) -> Option<Problem> {
        self.script.steps.get(number)?.problem
    }
}

/// Whether the statement does not wait for this lock.
fn tries(take: &StatementLock, statement: &Statement) -> bool {
    let is_try = matches!(&take.target, StatementTarget::Advisory(call) if call.act == Act::Try);
    is_try || statement.nowait == Nowait::Fails
}

/// Seconds from `since` to the snapshot.
fn age(view: &View, since: Timestamp) -> f64 {
    view.with_snapshot().map_or(0.0, |seen| seen.age(since))
}

impl LockOfState {
    fn place(&self, target: &StatementTarget) -> Option<&Resolution> {
        self.places.iter().find(|(named, _)| named == target).map(|(_, found)| found)
    }

    fn version(&self) -> u32 {
        let server = self.view.snapshot.as_deref().and_then(|snapshot| snapshot.server());
        server.map_or(0, |server| server.version_num / 10_000)
    }
}
