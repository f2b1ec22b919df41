use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::link::Link;
use super::standing::Standing;
use crate::Error;
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
