//! Locks in Redis, on one server and as Redlock on five, while servers are killed and freeze and processes are killed and
//! stopped. There are three uses: a form to be submitted once, a resource for one holder at a time, and a task with one
//! runner.
//!
//! The witnesses record the moments at which a holder's guard reported the lock as held, by this machine's clock, which
//! all the processes share. Two holders of a lock at one moment are an error.

pub(crate) mod child;
mod servers;

use std::sync::Arc;

use tokio_postgres::{Client, Error};

use super::faults::FaultPlan;
use super::runner::{Report, Runner};
use super::tally::{ContestOutcome, Tally, count, numbers, tally};
use super::{Contest, Environment, Rules};
use crate::scenario::SCHEMA;
use crate::workers::{TasksError, WorkerRole};
use servers::Servers;

tally! {
    workers servers acquired taken no_quorum lost overlaps submissions double_submissions resource_uses
    task_runs double_task_runs server_kills server_freezes kills stops overslept processes lost_workers
}

const WORKERS: usize = 6;
/// In milliseconds.
const TERM: u64 = 1_500;
const SHOWN_TERM: u64 = 4_000;

const TABLES: &str =
    "DROP TABLE IF EXISTS @.redis_holds, @.redis_submissions, @.redis_task_runs, @.redis_refusals;
     CREATE TABLE @.redis_holds (
         n bigserial PRIMARY KEY, lock text NOT NULL, kind text NOT NULL, worker text NOT NULL,
         first bigint NOT NULL, last bigint NOT NULL, outcome text);
     CREATE INDEX ON @.redis_holds (lock, first);
     CREATE TABLE @.redis_submissions (n bigserial PRIMARY KEY, form text NOT NULL, worker text NOT NULL);
     CREATE TABLE @.redis_task_runs (n bigserial PRIMARY KEY, task text NOT NULL, worker text NOT NULL);
     CREATE TABLE @.redis_refusals (
         worker text, reason text, times bigint NOT NULL DEFAULT 1, PRIMARY KEY (worker, reason))";

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, TasksError> {
    let servers = Servers::start().await?;
    let tables = TABLES.replace('@', SCHEMA);
    client.batch_execute(&tables).await.map_err(TasksError::server("the holders of locks"))?;
    let faults = FaultPlan {
        // Locks that another client is going to want.
        targets: format!(
            "SELECT worker, n FROM {SCHEMA}.redis_holds WHERE outcome IS NULL AND kind <> 'submit' ORDER BY n DESC LIMIT 20"
        ),
        lost: Some(format!(
            "SELECT nullif(EXISTS (SELECT FROM {SCHEMA}.redis_holds a JOIN {SCHEMA}.redis_holds b USING (lock)
                                    WHERE a.n = $1 AND b.n > a.n), false)"
        )),
        gap: if environment.headless { (600, 1_200) } else { (4_000, 5_000) },
        ..FaultPlan::default()
    };
    let term = if environment.headless { TERM } else { SHOWN_TERM };
    let role = WorkerRole::Redis { urls: servers.urls.clone(), term, seed: environment.seed };
    let servers = Arc::new(servers);
    let runner = Runner::new(Arc::clone(&servers));
    let mut runner = runner.processes(environment, "client", role, WORKERS, faults)?;
    let (seed, headless) = (environment.seed, environment.headless);
    runner.spawn_until(|quit| servers.inject_faults(seed, headless, quit));
    Ok(runner)
}

impl Rules for Servers {
    /// The single server, and the five that decide together.
    fn redis(&self) -> Vec<Vec<String>> {
        self.urls.split_at_checked(1).map(|(one, five)| vec![one.to_vec(), five.to_vec()]).unwrap_or_default()
    }

    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        let holds = format!(
            "SELECT count(*) AS acquired, count(*) FILTER (WHERE outcome = 'lost') AS lost,
                    count(*) FILTER (WHERE kind = 'resource') AS resource_uses,
                    count(*) FILTER (WHERE EXISTS (
                        SELECT FROM {SCHEMA}.redis_holds o
                         WHERE o.lock = h.lock AND o.n > h.n AND o.first <= h.last AND o.last >= h.first)) AS overlaps
               FROM {SCHEMA}.redis_holds h"
        );
        let twice = |number: &str, table: &str, column: &str| {
            format!(
                "SELECT count(*) AS {number}, count(*) - count(DISTINCT {column}) AS double_{number} FROM {SCHEMA}.{table}"
            )
        };
        let refusals = format!(
            "SELECT coalesce(sum(times) FILTER (WHERE reason = 'taken'), 0)::bigint AS taken,
                    coalesce(sum(times) FILTER (WHERE reason <> 'taken'), 0)::bigint AS no_quorum
               FROM {SCHEMA}.redis_refusals"
        );
        let (submissions, runs) = (
            twice("submissions", "redis_submissions", "form"),
            twice("task_runs", "redis_task_runs", "task"),
        );
        let (server_kills, server_freezes) = self.counts();
        let (workers, servers) = (count(WORKERS), count(self.urls.len()));
        let mut found = Numbers { workers, servers, server_kills, server_freezes, ..Numbers::default() };
        for sql in [holds, submissions, runs, refusals] {
            found.extend(numbers(client, &sql).await?);
        }
        found.extend(report.numbers(&KEYS));
        Ok(ContestOutcome::new(found.tally(Contest::Redis.as_str()))
            .zero(&[
                ("overlaps", "locks held by two at the same time"),
                ("double_submissions", "forms submitted twice"),
                ("double_task_runs", "tasks run twice"),
            ])
            .some("acquired", "no lock was acquired", report.first_error.as_deref()))
    }
}
