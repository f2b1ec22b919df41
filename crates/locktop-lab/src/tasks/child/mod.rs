//! A worker process of the demo: `locktop demo-worker NAME`, started only by a demo. The first line of its standard input
//! is its configuration; it ends when its standard input closes, so that a killed demo leaves none behind.

mod tasks;

use std::io::{BufRead, Read};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::contest::leases::child as leases;
use crate::contest::queue::child as queue;
#[cfg(feature = "redis")]
use crate::contest::redis_locks::child as redis_locks;
use crate::workers::{WorkerConfig, WorkerRole};

const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

pub async fn run() -> Result<(), String> {
    let (told, config) = oneshot::channel();
    let (ended, quit) = watch::channel(false);
    // A thread of its own: reading may block for as long as the demo lives.
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = String::new();
        let _ = input.read_line(&mut line);
        let _ = told.send(line);
        let mut rest = [0; 64];
        while input.read(&mut rest).is_ok_and(|count| count > 0) {}
        ended.send_replace(true);
        std::thread::sleep(SHUTDOWN_TIMEOUT);
        std::process::exit(0);
    });
    let line = config.await.unwrap_or_default();
    let config: WorkerConfig = serde_json::from_str(&line).map_err(|_| {
        "\"locktop demo-worker\" is a part of \"locktop demo\", which starts and controls it".to_owned()
    })?;
    match &config.role {
        WorkerRole::Tasks if config.recipe => until(quit, Box::pin(tasks::run_recipe(&config))).await,
        WorkerRole::Tasks => tasks::run(&config, quit).await,
        WorkerRole::Leases { leases, term, seed } => {
            until(quit, Box::pin(leases::run(&config, *leases, *term, *seed))).await
        }
        WorkerRole::Queue => queue::run(&config, quit).await,
        #[cfg(feature = "redis")]
        WorkerRole::Redis { urls, term, seed } => {
            until(quit, Box::pin(redis_locks::run(&config, urls, *term, *seed))).await
        }
    }
}

/// Works until it is requested to end, and then drops what is in progress.
async fn until(
    mut quit: watch::Receiver<bool>,
    work: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    tokio::select! {
        outcome = work => outcome,
        // The sender lives in the thread that ends this process.
        _ = quit.wait_for(|quit| *quit) => Ok(()),
    }
}
