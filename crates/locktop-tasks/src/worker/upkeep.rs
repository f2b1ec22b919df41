//! A worker's duties next to its jobs: it records which types it takes, and removes rows past their retention.
//!
//! Rows are removed only if the database has a retention set (`locktop.keep_executions` and similar), by one worker of
//! the schema at a time, in steps of a thousand rows with a pause after each, and only while no work is due for this
//! worker.

use super::connected::Connected;
use super::stop::Work;
use crate::work_session::SessionError;
use locktop_base::clock;

impl<W: Work> Connected<'_, W> {
    pub(super) async fn announce(&mut self) -> Result<(), SessionError> {
        const WHAT: &str = "recording which types it takes";
        match self.session.announce(&self.options.sources).await {
            Ok(()) => {
                self.is_announced = true;
                self.accepted(WHAT);
            }
            Err(error) => self.refused(WHAT, error)?,
        }
        Ok(())
    }

    /// Removes one batch of rows past their retention, and schedules the next.
    pub(super) async fn purge(&mut self) -> Result<(), SessionError> {
        const WHAT: &str = "removing rows past their retention";
        if !self.is_announced {
            self.announce().await?;
        }
        let has_more = match self.session.purge_step().await {
            Ok(logs) => {
                self.accepted(WHAT);
                self.purges.tell(&logs, self.options)
            }
            Err(error) => {
                self.refused(WHAT, error)?;
                false
            }
        };
        self.purges.done(clock::monotonic(), has_more);
        Ok(())
    }
}
