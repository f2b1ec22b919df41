use std::sync::Arc;

use super::Dice;
use crate::model::adapter::{
    Adapter, AdapterLease, AdapterSchedule, Choice, Depth, Evidence, Installation, InstallationRows, Job,
    JobState, Part, PartRows, Paused, Proof, Setting, Tried, Watch, Worker,
};
use crate::model::lock_key::LockKey;
use crate::model::systems::TextId;

impl Dice {
    fn key(&mut self) -> LockKey {
        if self.bool() { LockKey::Bigint(self.i64()) } else { LockKey::Pair(self.i32(), self.i32()) }
    }

    fn job(&mut self) -> Job {
        Job {
            id: self.text(),
            state: self.text(),
            name: self.maybe(Self::text),
            queue: self.maybe(Self::text),
            priority: self.maybe(Self::i64),
            attempt: self.maybe(Self::i64),
            max_attempts: self.maybe(Self::i64),
            due_at: self.maybe(Self::time),
            started_at: self.maybe(Self::time),
            finished_at: self.maybe(Self::time),
            limit: self.maybe(Self::f64),
            worker: self.maybe(Self::text),
            key: self.maybe(Self::key),
            backend_pid: self.maybe(Self::i32),
            beat_at: self.maybe(Self::time),
            lease_until: self.maybe(Self::time),
            blocked_by: self.maybe(Self::text),
            error: self.maybe(Self::text),
            note: self.maybe(Self::text),
            concurrency_key: self.maybe(Self::text),
            stuck: self.maybe(Self::text),
        }
    }

    fn worker(&mut self) -> Worker {
        Worker {
            id: self.text(),
            name: self.maybe(Self::text),
            host: self.maybe(Self::text),
            kind: self.maybe(Self::text),
            queues: self.maybe(Self::text),
            pid: self.maybe(Self::i64),
            capacity: self.maybe(Self::i64),
            busy: self.maybe(Self::i64),
            started_at: self.maybe(Self::time),
            beat_at: self.maybe(Self::time),
            stopped_at: self.maybe(Self::time),
            beat_limit: self.maybe(Self::f64),
            key: self.maybe(Self::key),
            backend_pid: self.maybe(Self::i32),
            sessions: self.maybe(Self::i64),
        }
    }

    fn part<T>(&mut self, row: impl FnMut(&mut Self) -> T) -> PartRows<T> {
        let rows = self.some(3, row);
        PartRows { section: self.section(rows), is_cut: self.bool() }
    }

    /// Only what rows are judged by.
    fn adapter(&mut self) -> Adapter {
        Adapter {
            name: self.text(),
            title: self.text(),
            settings: self.some(2, |dice| Setting {
                name: dice.text(),
                value: dice.text(),
                seconds: dice.maybe(Self::f64),
            }),
            evidence: Evidence {
                has_key: self.bool(),
                absent_is_lost: self.bool(),
                lists_workers: self.bool(),
                leads_by_lease: self.bool(),
                beat_seconds: self.maybe(Self::f64),
                beat_setting: self.maybe(Self::text),
                age_seconds: self.maybe(Self::f64),
                age_setting: self.maybe(Self::text),
                has_session: self.bool(),
                has_presence: self.bool(),
            },
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
        let choice = |part, dice: &mut Self| Choice { part, tried: vec![tried(dice), tried(dice)] };
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
            workers: self.part(Self::worker),
            jobs: Part::JOBS.into_iter().take(2).map(|part| (part, self.part(Self::job))).collect(),
            depth: self.part(|dice| Depth {
                queue: dice.maybe(Self::text),
                state: dice.text(),
                number: dice.i64().unsigned_abs(),
                is_estimate: dice.bool(),
                oldest_at: dice.maybe(Self::time),
            }),
            paused: self.part(|dice| Paused { queue: dice.text(), since: dice.maybe(Self::time) }),
            leases: self.part(|dice| AdapterLease {
                id: dice.text(),
                owner: dice.maybe(Self::text),
                token: dice.maybe(Self::text),
                note: dice.maybe(Self::text),
                acquired_at: dice.maybe(Self::time),
                expires_at: dice.maybe(Self::time),
                is_held: dice.maybe(Self::bool),
                key: dice.maybe(Self::key),
            }),
            schedules: self.part(|dice| AdapterSchedule {
                id: dice.text(),
                name: dice.maybe(Self::text),
                schedule: dice.maybe(Self::text),
                queue: dice.maybe(Self::text),
                next_run_at: dice.maybe(Self::time),
                last_run_at: dice.maybe(Self::time),
                is_enabled: dice.maybe(Self::bool),
            }),
            sessions: self.maybe(Self::roll),
        }
    }

    pub(super) fn job_watch(&mut self) -> Watch {
        Watch::restored(
            self.maybe(|dice| (dice.i32(), dice.maybe(Self::time), dice.bool())),
            self.some(4, |dice| ((TextId(dice.roll()), dice.maybe(Self::time)), dice.time()))
                .into_iter()
                .collect(),
        )
    }
}

/// Installations as text, to compare them. What is not kept of an adapter's file is unset.
pub(super) fn told(all: &[InstallationRows]) -> String {
    format!("{all:?}")
}
