use std::sync::Arc;

use super::{Dice, Rolled};
use crate::model::adapter::{
    Adapter, AdapterLease, AdapterSchedule, AdapterWatch, Depth, Evidence, Installation, InstallationRows,
    Job, JobState, Part, Paused, Proof, QueryChoice, Setting, Tried, Worker, evidence_rows, part_rows,
};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Epoch, Section};
use crate::model::source_tables::NameHash;

part_rows!(rolled);
evidence_rows!(rolled);

impl Dice {
    pub(super) fn key(&mut self) -> LockKey {
        if self.bool() { LockKey::Bigint(self.i64()) } else { LockKey::Pair(self.i32(), self.i32()) }
    }

    fn part<T>(&mut self, row: impl FnMut(&mut Self) -> T) -> Section<T> {
        let rows = self.some(3, row);
        self.section(rows).cut(self.bool())
    }

    /// Only what rows are judged by.
    fn adapter(&mut self) -> Adapter {
        Adapter {
            name: self.text(),
            title: self.text(),
            settings: self.some(2, Self::any),
            evidence: self.any(),
            comes_back: self.some(2, |dice| (dice.of(&[Proof::Lock, Proof::Heartbeat]), dice.text())),
            advise: self.some(2, |dice| (dice.of(&[JobState::Lost, JobState::Late]), dice.text())),
            ..Adapter::default()
        }
    }

    pub(super) fn installation(&mut self) -> InstallationRows {
        let tried = |dice: &mut Self| Tried {
            number: dice.below(9) as usize,
            outcome: if dice.bool() { Ok(dice.f64()) } else { Err(dice.text()) },
            size: dice.maybe(Self::f64),
            read: None,
            at: None,
        };
        let choice = |part, dice: &mut Self| QueryChoice { part, tried: vec![tried(dice), tried(dice)] };
        let choices = vec![choice(Part::Running, self), choice(Part::Leases, self)];
        let installation = Installation {
            adapter: Arc::new(self.adapter()),
            oid: self.u32(),
            schema: self.text(),
            prefix: self.text(),
            tables: self.some(2, |dice| (dice.text(), dice.text())).into_iter().collect(),
            version: self.maybe(Self::text),
            refused: self.maybe(Self::text),
            choices,
            actions: Vec::new(),
            is_alone: self.bool(),
        };
        InstallationRows {
            installation: Arc::new(installation),
            workers: self.part(Self::any),
            jobs: Part::JOBS.into_iter().take(2).map(|part| (part, self.part(Self::any))).collect(),
            depth: self.part(Self::any),
            paused: self.part(Self::any),
            leases: self.part(Self::any),
            schedules: self.part(Self::any),
            sessions: self.maybe(Self::roll),
        }
    }

    pub(super) fn job_watch(&mut self) -> AdapterWatch {
        let epoch = |dice: &mut Self| Epoch {
            own_pid: dice.i32(),
            started_at: dice.maybe(Self::time),
            in_recovery: dice.bool(),
        };
        let epoch = self.maybe(epoch);
        let free = self.some(4, |dice| ((NameHash(dice.roll()), dice.maybe(Self::time)), dice.time()));
        AdapterWatch { epoch, free: free.into_iter().collect(), locks: None }
    }
}

/// Installations as text, to compare them. What is not kept of an adapter's file is unset.
pub(super) fn told(all: &[InstallationRows]) -> String {
    format!("{all:?}")
}
