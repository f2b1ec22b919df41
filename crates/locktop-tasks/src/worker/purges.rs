//! Removes rows past their retention, if the database has a retention set (`locktop.keep_executions` and similar): by one
//! worker of the schema at a time, in steps of a thousand rows with a pause after each, and only while no work is due for
//! this worker.

use std::time::{Duration, Instant};

use super::Options;
use super::event::Event;
use super::idle::part_of;
use crate::schema::Log;
use crate::work_session::Purged;

/// Interval between checks for old rows.
pub(super) const EVERY: Duration = Duration::from_secs(600);
/// Pause between two steps while there are more rows.
const PAUSE: Duration = Duration::from_secs(1);
/// Rows per step, as in `purge_step()` of the schema.
const STEP: i64 = 1000;

#[derive(Debug)]
pub(super) struct Purges {
    every: Option<Duration>,
    pub(super) at: Option<Instant>,
    /// Removed rows that are not reported yet, per log.
    removed: [i64; Log::ALL.len()],
    /// Whether the missing privilege was reported.
    is_reported: bool,
}

impl Purges {
    /// At a random time, so that workers that start together do not purge together.
    pub(super) fn new(every: Option<Duration>, now: Instant) -> Self {
        let at = every.map(|every| now + part_of(every));
        Self { every, at, removed: [0; Log::ALL.len()], is_reported: false }
    }

    pub(super) fn done(&mut self, now: Instant, has_more: bool) {
        let pause = self
            .every
            .map(|every| if has_more { PAUSE.min(every) } else { every.saturating_sub(part_of(every / 4)) });
        self.at = pause.map(|pause| now + pause);
    }

    /// Reports the number of removed rows once there are no more to remove. Returns whether there are more.
    pub(super) fn report(&mut self, logs: &[Purged], options: &Options) -> bool {
        let mut has_more = false;
        for (log, removed) in Log::ALL.into_iter().zip(&mut self.removed) {
            let Some(step) = logs.iter().find(|step| step.log == log) else { continue };
            *removed += step.rows;
            if step.rows >= STEP {
                has_more = true;
            } else if *removed > 0 {
                let (rows, keep) = (std::mem::take(removed), step.keep.clone());
                options.report.send(&Event::Purged { log, rows, keep });
            }
        }
        // Only the owner may trim the audit log.
        let kept = logs.iter().find(|step| !step.may && step.log != Log::Audit);
        if let Some(step) = kept.filter(|_| !self.is_reported) {
            self.is_reported = true;
            let schema = options.schema.clone();
            options.report.send(&Event::NotPurged { log: step.log, schema });
        }
        has_more
    }
}
