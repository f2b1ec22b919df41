use std::cell::OnceCell;

use super::backend::Backend;
use super::lock::{LockTag, LockType};
use super::lock_name::LockNames;
use super::view::SnapshotView;
use super::words;

/// Number of holders, and of waiters, that are tried for the name of a key.
const ASKED: usize = 4;

impl<'a> SnapshotView<'a> {
    /// The session that provides the name of a lock, on every screen: `pid`, which holds it or waits for it. For an advisory
    /// lock, the first of `pid`, its holders and its waiters that gives a certain name.
    pub fn namer(self, names: &LockNames, tag: &LockTag, pid: Option<i32>) -> Option<&'a Backend> {
        let own = pid.and_then(|pid| self.backend(pid));
        if tag.locktype() != LockType::Advisory {
            return own;
        }
        let Some(queue) = self.view.index.queue(&self.view.graph, tag) else { return own };
        let holders = queue.holders.iter().filter_map(|holder| self.backend(holder.party.pid()));
        let waiters = queue.waiters.iter().filter_map(|waiter| self.backend(waiter.pid));
        let mut all = own.into_iter().chain(holders.take(ASKED)).chain(waiters.take(ASKED));
        let hashed = OnceCell::new();
        let hashed = || hashed.get_or_init(|| words::hashed_name(self.snapshot, tag)).clone();
        let is_sure = |backend: &&Backend| {
            let name = words::lock_name_or(self.snapshot, names, (tag, Some(*backend)), hashed);
            name.is_some_and(|name| !name.uncertain)
        };
        all.find(is_sure).or(own)
    }
}
