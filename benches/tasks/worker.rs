//! A worker: requests tasks, works, completes them, and requests again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use locktop::clock;
use locktop::pg::connect::Connection;
use tokio_postgres::Client;

use super::Round;
use super::system::System;
use super::tally::{Run, Tally};

/// How long a worker of locktop sleeps after it got no task, in seconds.
const NEXT: &str =
    "SELECT coalesce(greatest(0, extract(epoch FROM locktop.next_due_at() - clock_timestamp())), 1)::float8";

/// State that all workers of a round share.
pub(crate) struct Shared {
    pub(crate) tally: RefCell<Tally>,
    pub(crate) stop: Cell<bool>,
}

/// Works until `stop` is set. Each statement is its own transaction.
pub(crate) async fn run(
    connection: Connection,
    system: System,
    round: Round,
    number: usize,
    delay: Duration,
    shared: Rc<Shared>,
) {
    let client = &connection.client;
    let worker = format!("worker-{number:03}");
    let acquire = client.prepare(system.acquire(round.batch)).await.unwrap();
    let release = client.prepare(system.release()).await.unwrap();
    tokio::time::sleep(delay).await;
    while !shared.stop.get() {
        let rows = client.query(&acquire, &[&worker, &round.batch]).await.unwrap();
        let tasks: Vec<i32> = rows.iter().filter_map(|row| row.get(0)).collect();
        let started = clock::monotonic();
        shared.tally.borrow_mut().asked(tasks.is_empty());
        if tasks.is_empty() {
            pause(client, system).await;
            continue;
        }
        if !round.work.is_zero() {
            tokio::time::sleep(round.work).await;
        }
        let ended = clock::monotonic();
        for task in tasks {
            let counted = client.query_one(&release, &[&task, &worker]).await.unwrap().get(0);
            shared.tally.borrow_mut().ran(Run { task, started, ended, counted });
        }
    }
}

/// The pause of a worker that got no task.
async fn pause(client: &Client, system: System) {
    match system {
        System::Locktop => {
            let seconds: f64 = client.query_one(NEXT, &[]).await.unwrap().get(0);
            if seconds > 0.0 {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
        }
        System::Recipe { pause } if pause.is_zero() => {}
        System::Recipe { pause } => tokio::time::sleep(pause).await,
    }
}
