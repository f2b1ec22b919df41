//! Six servers: one on its own and five for Redlock. From time to time one is killed and comes back empty, or freezes for
//! a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::contest::Environment;
use crate::redis::{RedisServer, RedisServerError};

const SERVERS: usize = 6;
const SALT: u64 = 0x7265_6469_7321;

/// The servers, and the faults injected into them. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Servers {
    /// Their URLs; the first server is used on its own.
    pub(super) urls: Vec<String>,
    quit: watch::Sender<bool>,
    faults: JoinHandle<Vec<RedisServer>>,
    /// Kept to the end: an operator who reads the numbers may inspect the servers, too.
    left: Vec<RedisServer>,
    counts: Arc<FaultCounts>,
}

#[derive(Debug, Default)]
struct FaultCounts {
    kills: AtomicU64,
    freezes: AtomicU64,
}

impl Servers {
    pub(super) async fn start(environment: &Environment) -> Result<Self, RedisServerError> {
        let servers = RedisServer::several(SERVERS).await?;
        let urls = servers.iter().map(RedisServer::url).collect();
        let (quit, told) = watch::channel(false);
        let counts = Arc::<FaultCounts>::default();
        let gap = if environment.headless { (800, 1_500) } else { (6_000, 8_000) };
        let random = Rng::with_seed(environment.seed ^ SALT);
        let faults = tokio::spawn(inject_faults(servers, random, gap, told, Arc::clone(&counts)));
        Ok(Self { urls, quit, faults, left: Vec::new(), counts })
    }

    /// The single server, and the five that decide together.
    pub(super) fn sets(&self) -> Vec<Vec<String>> {
        self.urls.split_at_checked(1).map(|(one, five)| vec![one.to_vec(), five.to_vec()]).unwrap_or_default()
    }

    /// The number of kills, and of freezes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.counts.kills.load(Ordering::Relaxed), self.counts.freezes.load(Ordering::Relaxed))
    }

    /// Stops the faults and brings all servers back.
    pub(super) async fn stop_faults(&mut self) {
        self.quit.send_replace(true);
        if self.left.is_empty()
            && let Ok(servers) = (&mut self.faults).await
        {
            self.left = servers;
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.faults.abort();
    }
}

async fn inject_faults(
    mut servers: Vec<RedisServer>,
    mut random: Rng,
    (least, more): (u64, u64),
    mut quit: watch::Receiver<bool>,
    counts: Arc<FaultCounts>,
) -> Vec<RedisServer> {
    loop {
        let gap = Duration::from_millis(least + random.u64(..more));
        if tokio::time::timeout(gap, quit.wait_for(|quit| *quit)).await.is_ok() {
            return servers;
        }
        let (which, kind) = (random.u64(..6), random.u64(..2));
        let pause = Duration::from_millis(200 + random.u64(..1_300));
        let Some(server) = usize::try_from(which).ok().and_then(|which| servers.get_mut(which)) else {
            continue;
        };
        if kind == 0 {
            server.freeze();
            counts.freezes.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            server.thaw();
        } else if server.kill_hard().await.is_ok() {
            counts.kills.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            // A server that does not come back now may the next time: the others continue without it.
            let _ = server.restart().await;
        }
    }
}
