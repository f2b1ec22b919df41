//! Messages of the poll for `--log`: connections, durations, and sections that cannot be read. Without a log nothing is
//! computed.

use std::collections::BTreeMap;
use std::time::Duration;

use tracing::{Level, debug, enabled, info, warn};

use crate::model::sections::SectionRead;
use crate::model::snapshot::{Pooling, Snapshot};
use crate::model::view::Slowed;

/// A longer poll is logged if it also exceeds the interval.
const SLOW: Duration = Duration::from_secs(1);

/// The last logged state. Only changes are logged.
#[derive(Debug, Default)]
pub(super) struct Journal {
    unread: BTreeMap<String, String>,
    slowed: Option<Slowed>,
    /// The process id of the polling session. `None` until it is logged.
    session: Option<i32>,
}

impl Journal {
    pub(super) fn connected(&mut self, target: &str, took: Duration) {
        self.session = None;
        info!("connected to {target} in {}", ms(took));
    }

    pub(super) fn not_connected(why: &str, again: Duration) {
        warn!("no connection: {why}; next attempt in {}", ms(again));
    }

    pub(super) fn polled(&mut self, snapshot: &Snapshot, took: Duration, interval: Duration) {
        if took > SLOW.max(interval) {
            warn!("a poll took {}", ms(took));
        }
        debug!(
            "polled in {}: {} sessions, {} locks",
            ms(took),
            snapshot.backends.last_rows().len(),
            snapshot.locks.last_rows().len()
        );
        if let Some(server) = snapshot.server().filter(|server| self.session != Some(server.own_pid)) {
            self.session = Some(server.own_pid);
            let role = if server.in_recovery { "standby" } else { "primary" };
            let pooling = match server.pooling {
                Pooling::None => "no pooler",
                Pooling::Sessions => "pooler in session mode",
                Pooling::Transactions => "pooler in transaction mode",
            };
            info!(
                "PostgreSQL {} ({}), {role}, {pooling}, session {} as {}",
                server.version, server.version_num, server.own_pid, server.user
            );
        }
        if enabled!(Level::WARN) {
            self.sections(snapshot);
        }
    }

    pub(super) fn failed(why: &str, took: Duration) {
        warn!("a poll failed after {}: {why}", ms(took));
    }

    pub(super) fn slowed(&mut self, slowed: Option<Slowed>) {
        if self.slowed.map(|slowed| slowed.interval) != slowed.map(|slowed| slowed.interval) {
            let words = slowed.map(|Slowed { interval, cost }| {
                format!(
                    "polling every {interval}s: reading pg_locks takes the server {:.0} ms",
                    cost * 1000.0
                )
            });
            info!("{}", words.as_deref().unwrap_or("polling at the configured interval again"));
        }
        self.slowed = slowed;
    }

    fn sections(&mut self, snapshot: &Snapshot) {
        let unread = unread(snapshot);
        for (name, why) in unread.iter().filter(|(name, why)| self.unread.get(*name) != Some(*why)) {
            warn!("{name} cannot be read: {why}");
        }
        for name in self.unread.keys().filter(|name| !unread.contains_key(*name)) {
            info!("{name} can be read again");
        }
        self.unread = unread;
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

fn unread(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let reason = |read: &SectionRead<'_>| Some((read.label(), read.error?.to_owned()));
    snapshot.unread().iter().filter_map(reason).collect()
}
