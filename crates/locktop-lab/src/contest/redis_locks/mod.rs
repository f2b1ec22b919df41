//! Locks in Redis, on one server and as Redlock on five, while servers are killed and freeze and processes are killed and
//! stopped. There are three uses: a form to be submitted once, a resource for one holder at a time, and a task with one
//! runner.
//!
//! The witnesses record the moments at which a holder's guard reported the lock as held, by this machine's clock, which
//! all the processes share. Two holders of a lock at one moment are an error.

pub(crate) mod child;
mod servers;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_postgres::{Client, Error};

use super::faults::FaultPlan;
use super::runner::Runner;
use super::tally::{ContestOutcome, Tally, count, numbers, tally};
use super::{Contest, Environment, RunningContest};
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

#[derive(Debug)]
pub(super) struct RedisContest {
    runner: Runner,
    servers: Servers,
}

impl RedisContest {
    pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Self, TasksError> {
        let servers = Servers::start(environment).await?;
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
        let runner = Runner::begin(environment, "client", role, WORKERS, faults)?;
        Ok(Self { runner, servers })
    }

    async fn found(&self, client: &Client) -> Result<ContestOutcome, Error> {
        let holds = format!(
            "SELECT count(*), count(*) FILTER (WHERE outcome = 'lost'), count(*) FILTER (WHERE kind = 'resource'),
                    count(*) FILTER (WHERE EXISTS (
                        SELECT FROM {SCHEMA}.redis_holds o
                         WHERE o.lock = h.lock AND o.n > h.n AND o.first <= h.last AND o.last >= h.first))
               FROM {SCHEMA}.redis_holds h"
        );
        let twice = |table: &str, column: &str| {
            format!("SELECT count(*), count(*) - count(DISTINCT {column}) FROM {SCHEMA}.{table}")
        };
        let refusals = format!(
            "SELECT coalesce(sum(times) FILTER (WHERE reason = 'taken'), 0)::bigint,
                    coalesce(sum(times) FILTER (WHERE reason <> 'taken'), 0)::bigint FROM {SCHEMA}.redis_refusals"
        );
        let servers = count(self.servers.urls.len());
        let mut found = Numbers { workers: count(WORKERS), servers, ..Numbers::default() };
        [found.acquired, found.lost, found.resource_uses, found.overlaps] = numbers(client, &holds).await?;
        [found.submissions, found.double_submissions] =
            numbers(client, &twice("redis_submissions", "form")).await?;
        [found.task_runs, found.double_task_runs] =
            numbers(client, &twice("redis_task_runs", "task")).await?;
        [found.taken, found.no_quorum] = numbers(client, &refusals).await?;
        (found.server_kills, found.server_freezes) = self.servers.counts();
        let record = self.runner.record();
        (found.kills, found.stops, found.overslept) =
            (record.kills, count(record.pauses.len()), record.overslept);
        (found.processes, found.lost_workers) = self.runner.processes();
        let first_error = self.runner.first_error();
        Ok(ContestOutcome::new(found.tally(Contest::Redis.as_str()))
            .zero(&[
                ("overlaps", "locks held by two at the same time"),
                ("double_submissions", "forms submitted twice"),
                ("double_task_runs", "tasks run twice"),
            ])
            .some("acquired", "no lock was acquired", first_error.as_deref())
            .must_not(found.lost_workers > 0, first_error.unwrap_or_default()))
    }
}

impl RunningContest for RedisContest {
    fn finish(&mut self) -> BoxFuture<'_, ()> {
        async {
            // A holder needs running servers to release what it holds.
            self.servers.stop_faults().await;
            self.runner.finish().await;
        }
        .boxed()
    }

    fn count<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<ContestOutcome, Error>> {
        self.found(client).boxed()
    }

    fn redis(&self) -> Vec<Vec<String>> {
        self.servers.sets()
    }
}
