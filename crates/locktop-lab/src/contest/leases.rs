//! Processes that compete for leases. The counts come from a trigger on the lease table, which records every term as the
//! server sees it, and from the rows that holders wrote.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use locktop_locks::lease::{Lease, Request};
use locktop_locks::{Error as LockError, Held as _};
use locktop_tasks::schema::SchemaName;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;
use tokio_postgres::{Client, Error};

use super::faults::FaultPlan;
use super::runner::{Report, Runner};
use super::tally::{ContestOutcome, Tally, count, numbers, tally};
use super::{Contest, Environment, PAUSE, Rules, failed};
use crate::DemoError;
use crate::OpenQuestion;
use crate::scenario::SCHEMA;
use crate::workers::{WorkerConfig, WorkerRole};

tally! {
    workers leases acquired renewed released lost taken_over overlaps tokens_back writes
    stale_writes_refused stale_writes_accepted stale_releases_refused kills stops overslept processes
    lost_workers
}

const WORKERS: usize = 6;
const LEASES: i32 = 4;
/// A term in milliseconds: short so that many end, and longer with a dashboard, whose operator may want to end one.
const TERM: u64 = 1_000;
const SHOWN_TERM: u64 = 15_000;
/// How often the holders are notified whether a question is open.
const POLL: Duration = Duration::from_millis(100);

/// One row for each term. `ends` is when it ended, or will end unless it is renewed.
fn tables(environment: &Environment) -> String {
    let leases = format!("{}.distlock", environment.schema.quoted());
    format!(
        "DROP TABLE IF EXISTS {SCHEMA}.lease_terms, {SCHEMA}.lease_writes, {SCHEMA}.lease_losses, {SCHEMA}.lease_question;
         -- While a user has a question open, holders keep working.
         CREATE TABLE {SCHEMA}.lease_question (is_open boolean NOT NULL);
         INSERT INTO {SCHEMA}.lease_question VALUES (false);
         CREATE TABLE {SCHEMA}.lease_terms (
             token bigint PRIMARY KEY, lease integer NOT NULL, owner text NOT NULL, acquired_at timestamptz NOT NULL,
             ends timestamptz NOT NULL, released_at timestamptz, renewed integer NOT NULL DEFAULT 0);
         CREATE TABLE {SCHEMA}.lease_writes (
             n bigserial PRIMARY KEY, lease integer NOT NULL, token bigint NOT NULL, worker text NOT NULL,
             at timestamptz NOT NULL DEFAULT clock_timestamp());
         CREATE TABLE {SCHEMA}.lease_losses (
             n bigserial PRIMARY KEY, token bigint NOT NULL, worker text NOT NULL, tried text NOT NULL,
             refused boolean NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
         CREATE OR REPLACE FUNCTION {SCHEMA}.note_term() RETURNS trigger LANGUAGE plpgsql AS $body$
         BEGIN
             INSERT INTO {SCHEMA}.lease_terms AS t (token, lease, owner, acquired_at, ends, released_at)
             VALUES (NEW.token, NEW.id, NEW.owner, NEW.acquired_at, NEW.ts + NEW.expired_time, NEW.released_at)
             ON CONFLICT (token) DO UPDATE
                SET ends = EXCLUDED.ends, released_at = EXCLUDED.released_at,
                    renewed = t.renewed + (EXCLUDED.released_at IS NULL)::int;
             RETURN NULL;
         END $body$;
         CREATE TRIGGER demo_note_term AFTER INSERT OR UPDATE ON {leases}
             FOR EACH ROW WHEN (NEW.owner IS NOT NULL) EXECUTE FUNCTION {SCHEMA}.note_term()"
    )
}

#[derive(Debug)]
struct Leases;

pub(super) async fn begin(environment: &Environment, client: &Client) -> Result<Runner, DemoError> {
    client.batch_execute(&tables(environment)).await.map_err(DemoError::server("the terms of leases"))?;
    let view = format!("{}.leases", environment.schema.quoted());
    let is_taken_over = format!(
        "EXISTS (SELECT FROM {SCHEMA}.lease_terms a JOIN {SCHEMA}.lease_terms b USING (lease)
                  WHERE a.token = u.token AND a.released_at IS NULL AND b.token > a.token)"
    );
    let faults = FaultPlan {
        targets: format!("SELECT owner, token FROM {view} WHERE state = 'held' ORDER BY owner"),
        lost: Some(format!("SELECT nullif({is_taken_over}, false) FROM (SELECT $1::bigint) AS u (token)")),
        unnoticed: Some(format!(
            "SELECT count(*) FROM unnest($1::bigint[]) AS u (token)
              WHERE {is_taken_over} AND NOT EXISTS (SELECT FROM {SCHEMA}.lease_losses l WHERE l.token = u.token)"
        )),
        gap: if environment.options.headless { (300, 900) } else { (3_000, 4_000) },
        ..FaultPlan::default()
    };
    let term = if environment.options.headless { TERM } else { SHOWN_TERM };
    let role = WorkerRole::Leases { term };
    let mut runner = Runner::new(Arc::new(Leases)).processes(environment, "node", role, WORKERS, faults)?;
    if !environment.options.headless {
        runner.spawn(print_result(environment.info.clone(), environment.options.question.clone()));
    }
    Ok(runner)
}

async fn print_result(info: ConnInfo, question: OpenQuestion) {
    let mut told = false;
    loop {
        // An error means a lost server, which the holders have lost, too.
        if let Ok(connection) = connect(&info).await {
            let sql = format!("UPDATE {SCHEMA}.lease_question SET is_open = $1");
            loop {
                let is_open = question.is_open();
                if is_open != told && connection.client.execute(&sql, &[&is_open]).await.is_err() {
                    break;
                }
                told = is_open;
                tokio::time::sleep(POLL).await;
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

impl Rules for Leases {
    async fn count(&self, client: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        // Each term is compared with the one before it, by token and by time.
        let terms = format!(
            "SELECT count(*) AS acquired, coalesce(sum(renewed), 0)::bigint AS renewed, count(released_at) AS released,
                    count(*) FILTER (WHERE before_token IS NOT NULL AND before_released IS NULL) AS taken_over,
                    count(*) FILTER (WHERE before_ends > acquired_at) AS overlaps,
                    count(*) FILTER (WHERE later_token > token) AS tokens_back
               FROM (SELECT t.*, lag(token) OVER w AS before_token, lag(released_at) OVER w AS before_released,
                            lag(ends) OVER w AS before_ends,
                            max(token) OVER (PARTITION BY lease ORDER BY acquired_at
                                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later_token
                       FROM {SCHEMA}.lease_terms t WINDOW w AS (PARTITION BY lease ORDER BY token)) q"
        );
        let writes = format!(
            "SELECT count(*) AS writes, count(*) FILTER (WHERE EXISTS (
                        SELECT FROM {SCHEMA}.lease_terms t
                         WHERE t.lease = w.lease AND t.token > w.token AND t.acquired_at < w.at)) AS stale_writes_accepted
               FROM {SCHEMA}.lease_writes w"
        );
        let losses = format!(
            "SELECT count(*) FILTER (WHERE tried = 'write' AND refused) AS stale_writes_refused,
                    count(*) FILTER (WHERE tried = 'release' AND refused) AS stale_releases_refused, count(*) AS lost
               FROM {SCHEMA}.lease_losses"
        );
        let leases = u64::from(LEASES.unsigned_abs());
        let mut found = Numbers { workers: count(WORKERS), leases, ..Numbers::default() };
        for sql in [terms, writes, losses] {
            found.extend(numbers(client, &sql).await?);
        }
        found.extend(report.numbers(&KEYS));
        let refused = found.stale_writes_refused + found.stale_releases_refused;
        let silent = found.overslept > 0 && refused == 0;
        Ok(ContestOutcome::new(found.tally(Contest::Leases.as_str()))
            .zero(&[
                ("overlaps", "new holders before the previous one had ended"),
                ("tokens_back", "tokens that are not above all previous ones"),
                ("stale_writes_accepted", "writes accepted after another session acquired the lease"),
            ])
            .must_not(silent, "no late holder was refused")
            .some("acquired", "no lease was acquired", report.first_error.as_deref()))
    }
}

const TIMEOUT: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(60);

/// A process that acquires leases, works under each, and writes rows that only the holder may write. When it finds that a
/// lease is lost it writes once more, as a holder that did not notice would. The server must refuse.
pub(crate) async fn run(config: &WorkerConfig, term: u64) -> Result<(), String> {
    let mut node = Node {
        info: config.info("")?,
        schema: SchemaName::new(&config.schema).map_err(|error| error.to_string())?,
        name: config.worker.clone(),
        term,
        random: config.random(),
    };
    loop {
        // An error means a lost server, or a term too short to learn of it.
        let _ = node.compete().await;
        tokio::time::sleep(PAUSE).await;
    }
}

struct Node {
    info: ConnInfo,
    schema: SchemaName,
    name: String,
    /// In milliseconds.
    term: u64,
    random: Rng,
}

impl Node {
    async fn compete(&mut self) -> Result<(), LockError> {
        let mut client = connect(&self.info).await?.client;
        loop {
            let id =
                1 + i32::try_from(self.random.u64(..u64::from(LEASES.unsigned_abs()))).unwrap_or_default();
            let term = Duration::from_millis(self.term);
            let request = Request { schema: self.schema.clone(), ..Request::new(id, &self.name, term) };
            if let Some(lease) = Lease::acquire_within(&self.info, &request, TIMEOUT).await? {
                // From a fifth of a term to two terms: some need no renewal, and some several.
                let work = Duration::from_millis(self.term / 5 + self.random.u64(..self.term * 2));
                self.hold(&mut client, id, lease, work).await?;
            }
            tokio::time::sleep(Duration::from_millis(self.random.u64(..self.term / 5))).await;
        }
    }

    async fn hold(
        &self,
        client: &mut Client,
        id: i32,
        lease: Lease,
        work: Duration,
    ) -> Result<(), LockError> {
        let steps = work.as_millis() / STEP.as_millis();
        let working = async {
            let mut step = 0;
            // It is not released while the operator has a question open.
            while self.write(client, id, &lease).await? || step < steps {
                step += 1;
                tokio::time::sleep(STEP).await;
            }
            Ok::<(), LockError>(())
        };
        let token = lease.token();
        let lost = match lease.run(working).await {
            Ok(Ok(())) => false,
            Ok(Err(LockError::Fenced(_))) | Err(_) => true,
            Ok(Err(other)) => return Err(other),
        };
        if !lost {
            // A lease that is lost cannot be released.
            let held = lease.release().await?;
            return if held { Ok(()) } else { self.note(client, token, "release", true).await };
        }
        let mut tried = self.write(client, id, &lease).await;
        if !matches!(tried, Ok(_) | Err(LockError::Fenced(_))) {
            // The server has terminated a session that was suspended in its transaction.
            *client = connect(&self.info).await?.client;
            tried = self.write(client, id, &lease).await;
        }
        let refused = match tried {
            Ok(_) => false,
            Err(LockError::Fenced(_)) => true,
            Err(other) => return Err(other),
        };
        self.note(client, token, "write", refused).await
    }

    /// Writes a row that only the holder may write; returns whether the operator has a question open.
    async fn write(&self, client: &mut Client, id: i32, lease: &Lease) -> Result<bool, LockError> {
        let transaction = client.transaction().await.map_err(failed("a row of the holder"))?;
        lease.fence(&transaction).await?;
        let sql = format!(
            "INSERT INTO {SCHEMA}.lease_writes (lease, token, worker) VALUES ($1, $2, $3)
             RETURNING (SELECT q.is_open FROM {SCHEMA}.lease_question q)"
        );
        let row = transaction
            .query_one(&sql, &[&id, &lease.token(), &self.name])
            .await
            .map_err(failed("a row of the holder"))?;
        let is_open = row.try_get(0).map_err(failed("a row of the holder"))?;
        transaction.commit().await.map_err(failed("a row of the holder"))?;
        Ok(is_open)
    }

    async fn note(&self, client: &Client, token: i64, tried: &str, refused: bool) -> Result<(), LockError> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.lease_losses (token, worker, tried, refused) VALUES ($1, $2, $3, $4)"
        );
        client
            .execute(&sql, &[&token, &self.name, &tried, &refused])
            .await
            .map(drop)
            .map_err(failed("a row of the holder"))
    }
}
