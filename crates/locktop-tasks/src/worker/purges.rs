//! When rows are removed that are past their retention, and what is told of it.

use std::time::{Duration, Instant};

use super::Options;
use super::event::Event;
use super::idle::part_of;
use crate::schema::Log;
use crate::work_session::Purged;

/// Between two looks for old rows.
pub(super) const EVERY: Duration = Duration::from_secs(600);
/// Between two steps while there are more.
const PAUSE: Duration = Duration::from_secs(1);
/// Rows of a step: `purge_step()` of the schema.
const STEP: i64 = 1000;

/// When to look for old rows, and what of it is still to be told.
#[derive(Debug)]
pub(super) struct Purges {
    every: Option<Duration>,
    /// When to look for them.
    pub(super) at: Option<Instant>,
    /// What was removed and not told yet.
    removed: [i64; Log::ALL.len()],
    /// It was told that the role may not remove rows.
    told: bool,
}

impl Purges {
    /// Workers that begin together do not look together.
    pub(super) fn new(every: Option<Duration>, now: Instant) -> Self {
        let at = every.map(|every| now + part_of(every));
        Self { every, at, removed: [0; Log::ALL.len()], told: false }
    }

    /// A step is done.
    pub(super) fn done(&mut self, now: Instant, has_more: bool) {
        let pause = self
            .every
            .map(|every| if has_more { PAUSE.min(every) } else { every.saturating_sub(part_of(every / 4)) });
        self.at = pause.map(|pause| now + pause);
    }

    /// Tells what was removed, once nothing more of it is there; whether there is more.
    pub(super) fn tell(&mut self, logs: &[Purged], options: &Options) -> bool {
        let mut has_more = false;
        for (log, removed) in Log::ALL.into_iter().zip(&mut self.removed) {
            let Some(step) = logs.iter().find(|step| step.log == log) else { continue };
            *removed += step.rows;
            if step.rows >= STEP {
                has_more = true;
            } else if *removed > 0 {
                let (rows, keep) = (std::mem::take(removed), step.keep.clone());
                options.report.tell(&Event::Purged { log, rows, keep });
            }
        }
        // The record is the owner's to cut.
        let kept = logs.iter().find(|step| !step.may && step.log != Log::Audit);
        if let Some(step) = kept.filter(|_| !self.told) {
            self.told = true;
            let schema = options.schema.clone();
            options.report.tell(&Event::NotPurged { log: step.log, schema });
        }
        has_more
    }
}
