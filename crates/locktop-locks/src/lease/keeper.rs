use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::LeaseId;
use super::link::Link;
use crate::{Error, Lost};
use locktop_base::clock;

/// Leaves the queue, and renews until the lease is lost or the other end of `stop` is dropped.
pub(super) async fn keep(
    mut link: Link,
    token: i64,
    standing: watch::Sender<Standing>,
    stop: oneshot::Receiver<()>,
) -> Link {
    tokio::select! {
        biased;
        _ = stop => standing.send_modify(Standing::end),
        () = renew_for_ever(&mut link, token, &standing) => {}
    }
    link
}

async fn renew_for_ever(link: &mut Link, token: i64, standing: &watch::Sender<Standing>) {
    let start = clock::monotonic();
    link.leave().await;
    let mut pause = (link.term / 3).saturating_sub(start.elapsed());
    loop {
        tokio::time::sleep(pause).await;
        standing.send_if_modified(|standing| standing.tick(clock::since_boot()));
        if standing.borrow().loss().is_some() {
            return;
        }
        let left = standing.borrow().left(clock::since_boot());
        if left < shortest(link.term) {
            // Too late for an answer: the result of the last attempt is the better reason.
            pause = left;
            continue;
        }
        pause = match renew(link, token, standing).await {
            Ok(()) => link.term / 3,
            Err(reason) => {
                standing.send_modify(|standing| standing.failed(reason));
                link.term / 30
            }
        };
    }
}

/// The minimum time for an attempt.
fn shortest(term: Duration) -> Duration {
    term / 20
}

/// One attempt, for half of the time that is left: a new connection may get through if this one does not.
async fn renew(link: &mut Link, token: i64, standing: &watch::Sender<Standing>) -> Result<(), String> {
    let sent = clock::since_boot();
    let left = standing.borrow().left(sent);
    let limit = (left / 2).max(shortest(link.term)).min(left);
    let answer = tokio::time::timeout(limit, link.renew(token)).await;
    let term = link.term;
    match answer {
        Ok(Ok(Some(true))) => {
            standing.send_modify(|standing| standing.renewed(sent, term, clock::since_boot()));
            Ok(())
        }
        Ok(Ok(Some(false))) => {
            standing.send_modify(Standing::lost);
            Ok(())
        }
        Ok(Ok(None)) => Err(Error::Locked { id: link.lease.clone(), what: "lease_renew" }.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => {
            link.close();
            Err(Error::silent("lease_renew", round(limit)).to_string())
        }
    }
}

fn round(limit: Duration) -> Duration {
    Duration::from_millis(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

/// Either the lease is held for some time, or it is lost, and then for good.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    id: LeaseId,
    /// By [`locktop_base::clock::since_boot`]: from then on another owner may hold it.
    until: Duration,
    /// The failure of the last renewal attempt.
    trouble: Option<String>,
    loss: Option<Lost>,
    /// It is released, or its guard is dropped: its end is no loss.
    is_over: bool,
}

/// Until when a lease counts as held that was requested at `sent`.
pub(super) fn end(sent: Duration, term: Duration) -> Duration {
    sent.saturating_add(term.saturating_sub(term / 10))
}

impl Standing {
    pub(super) fn new(id: LeaseId, sent: Duration, term: Duration) -> Self {
        Self { id, until: end(sent, term), trouble: None, loss: None, is_over: false }
    }

    pub(super) fn loss(&self) -> Option<&Lost> {
        self.loss.as_ref()
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// How long it is certainly held.
    pub(super) fn left(&self, now: Duration) -> Duration {
        if self.loss.is_some() { Duration::ZERO } else { self.until.saturating_sub(now) }
    }

    /// Reads the clock; returns whether that changed anything.
    pub(super) fn tick(&mut self, now: Duration) -> bool {
        if self.is_over || self.loss.is_some() || now < self.until {
            return false;
        }
        let reason = self.trouble.clone().unwrap_or_else(|| {
            "this process or its machine was suspended, or its runtime was blocked".to_owned()
        });
        self.loss = Some(Lost::NotRenewed { id: self.id.clone(), reason });
        true
    }

    /// A renewal is confirmed. A confirmation that comes too late does not restore a lost lease.
    pub(super) fn renewed(&mut self, sent: Duration, term: Duration, now: Duration) {
        self.tick(now);
        self.trouble = None;
        self.until = end(sent, term);
        self.tick(now);
    }

    /// A renewal attempt has failed, and may be repeated.
    pub(super) fn failed(&mut self, reason: String) {
        self.trouble = Some(reason);
    }

    /// The server reports that it is not held.
    pub(super) fn lost(&mut self) {
        self.loss.get_or_insert(Lost::Lease { id: self.id.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn it_ends_before_the_term_does_counted_from_before_it_was_sent() {
        let mut standing = Standing::new(LeaseId::Number(7), at(100), TERM);
        assert_eq!(standing.left(at(100)), at(27));
        assert!(!standing.tick(at(126)) && standing.loss().is_none());
        assert!(standing.tick(at(127)), "three seconds before the server lets another owner in");
        assert!(!standing.tick(at(128)), "once is enough");
        assert!(matches!(standing.loss(), Some(Lost::NotRenewed { id: LeaseId::Number(7), .. })));
        assert_eq!(standing.left(at(101)), Duration::ZERO);
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent() {
        let mut standing = Standing::new(LeaseId::Number(7), at(100), TERM);
        standing.renewed(at(110), TERM, at(126));
        assert_eq!(standing.left(at(126)), at(11));
    }

    #[test]
    fn an_answer_from_before_the_machine_slept_does_not_count() {
        let mut standing = Standing::new(LeaseId::Number(7), at(100), TERM);
        standing.renewed(at(110), TERM, at(500));
        assert!(standing.loss().is_some());
        let mut standing = Standing::new(LeaseId::Number(7), at(100), TERM);
        standing.tick(at(127));
        standing.renewed(at(120), TERM, at(128));
        assert!(standing.loss().is_some(), "a loss that was reported is final");
    }

    #[test]
    fn the_last_trouble_is_the_reason_and_the_servers_word_stays() {
        let mut standing = Standing::new(LeaseId::Number(7), at(100), TERM);
        standing.failed("no connection".to_owned());
        standing.tick(at(200));
        let text = standing.loss().unwrap().to_string();
        assert_eq!(text, "lease 7 may be lost: no renewal was confirmed in time (no connection)");
        let mut standing = Standing::new(LeaseId::Number(7), at(100), TERM);
        standing.lost();
        standing.tick(at(200));
        assert_eq!(standing.loss(), Some(&Lost::Lease { id: LeaseId::Number(7) }));
    }
}
