//! Six servers: one on its own and five for Redlock. From time to time one is killed and comes back empty, or freezes for
//! a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::{Mutex, watch};

use crate::redis::{RedisServer, RedisServerError};

const SERVERS: usize = 6;
const SALT: u64 = 0x7265_6469_7321;

/// The servers, which end when this is dropped, and the numbers of faults injected into them.
#[derive(Debug)]
pub(super) struct Servers {
    /// Their URLs; the first server is used on its own.
    pub(super) urls: Vec<String>,
    running: Mutex<Vec<RedisServer>>,
    kills: AtomicU64,
    freezes: AtomicU64,
}

impl Servers {
    pub(super) async fn start() -> Result<Self, RedisServerError> {
        let servers = RedisServer::several(SERVERS).await?;
        let urls = servers.iter().map(RedisServer::url).collect();
        let running = Mutex::new(servers);
        Ok(Self { urls, running, kills: AtomicU64::default(), freezes: AtomicU64::default() })
    }

    /// The number of kills, and of freezes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.kills.load(Ordering::Relaxed), self.freezes.load(Ordering::Relaxed))
    }

    /// Ends with all servers running: a holder needs them to release what it holds.
    pub(super) async fn inject_faults(
        self: Arc<Self>,
        seed: u64,
        headless: bool,
        mut quit: watch::Receiver<bool>,
    ) {
        let mut random = Rng::with_seed(seed ^ SALT);
        let (least, more) = if headless { (800, 1_500) } else { (6_000, 8_000) };
        loop {
            let gap = Duration::from_millis(least + random.u64(..more));
            if tokio::time::timeout(gap, quit.wait_for(|quit| *quit)).await.is_ok() {
                return;
            }
            let (which, kind) = (random.u64(..6), random.u64(..2));
            let pause = Duration::from_millis(200 + random.u64(..1_300));
            let mut servers = self.running.lock().await;
            let Some(server) = usize::try_from(which).ok().and_then(|which| servers.get_mut(which)) else {
                continue;
            };
            if kind == 0 {
                server.freeze();
                self.freezes.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                server.thaw();
            } else if server.kill_hard().await.is_ok() {
                self.kills.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                // A server that does not come back now may the next time: the others continue without it.
                let _ = server.restart().await;
            }
        }
    }
}
