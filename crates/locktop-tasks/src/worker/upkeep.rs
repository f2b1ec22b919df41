//! What a worker does beside its work: it says which types it takes, and removes what is past its retention.
//!
//! Rows are removed only where the database has a retention set (`locktop.keep_executions` and its like), by one worker of the schema at a time,
//! in steps of a thousand rows with a pause after each, and only when nothing is due that this worker could take.

use std::time::{Duration, Instant};

use super::connected::Connected;
use super::event::Event;
use super::idle::part_of;
use super::work::Work;
use crate::schema::Log;
use crate::work_session::{Purged, SessionError};
use locktop_base::clock;

/// Between two looks for old rows.
pub(super) const EVERY: Duration = Duration::from_secs(600);
/// Between two steps while there are more.
const PAUSE: Duration = Duration::from_secs(1);
/// Rows of a step: `purge_step()` of the schema.
const STEP: i64 = 1000;

/// What of it is under way.
#[derive(Debug)]
pub(super) struct Upkeep {
    every: Option<Duration>,
    /// When to look for old rows.
    pub(super) purge_at: Option<Instant>,
    is_announced: bool,
    /// What was removed and not told yet.
    removed: [i64; Log::ALL.len()],
    /// It was told that the role may not remove rows.
    told: bool,
}

impl Upkeep {
    /// Workers that begin together do not look together.
    pub(super) fn new(every: Option<Duration>, now: Instant) -> Self {
        let purge_at = every.map(|every| now + part_of(every));
        Self { every, purge_at, is_announced: false, removed: [0; Log::ALL.len()], told: false }
    }
}

impl<W: Work> Connected<'_, W> {
    /// Says which types it takes.
    pub(super) async fn announce(&mut self) -> Result<(), SessionError> {
        const WHAT: &str = "telling which types it takes";
        match self.session.announce(&self.options.sources).await {
            Ok(()) => {
                self.upkeep.is_announced = true;
                self.accepted(WHAT);
            }
            Err(error) => self.refused(WHAT, error)?,
        }
        Ok(())
    }

    /// One step.
    pub(super) async fn purge(&mut self) -> Result<(), SessionError> {
        const WHAT: &str = "removing rows that are past their retention";
        if !self.upkeep.is_announced {
            self.announce().await?;
        }
        let has_more = match self.session.purge_step().await {
            Ok(logs) => {
                self.accepted(WHAT);
                self.purged(&logs)
            }
            Err(error) => {
                self.refused(WHAT, error)?;
                false
            }
        };
        let now = clock::monotonic();
        let pause = self
            .upkeep
            .every
            .map(|every| if has_more { PAUSE.min(every) } else { every.saturating_sub(part_of(every / 4)) });
        self.upkeep.purge_at = pause.map(|pause| now + pause);
        Ok(())
    }

    /// Tells what was removed, once nothing more of it is there; whether there is more.
    fn purged(&mut self, logs: &[Purged]) -> bool {
        let mut has_more = false;
        for (log, removed) in Log::ALL.into_iter().zip(&mut self.upkeep.removed) {
            let Some(step) = logs.iter().find(|step| step.log == log) else { continue };
            *removed += step.rows;
            if step.rows >= STEP {
                has_more = true;
            } else if *removed > 0 {
                let (rows, keep) = (std::mem::take(removed), step.keep.clone());
                self.options.report.tell(&Event::Purged { log, rows, keep });
            }
        }
        // The record is the owner's to cut.
        let kept = logs.iter().find(|step| !step.may && step.log != Log::Audit);
        if let Some(step) = kept.filter(|_| !self.upkeep.told) {
            self.upkeep.told = true;
            let schema = self.options.schema.clone();
            self.options.report.tell(&Event::NotPurged { log: step.log, schema });
        }
        has_more
    }
}
