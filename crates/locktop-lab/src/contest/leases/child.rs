//! A process that acquires leases, works under each, and writes rows that only the holder may write. When it finds that a
//! lease is lost it writes once more, as a holder that did not notice would. The server must refuse.

use std::time::Duration;

use fastrand::Rng;
use tokio_postgres::Client;

use crate::scenario::SCHEMA;
use crate::workers::WorkerConfig;
use locktop_locks::lease::{Lease, Request};
use locktop_locks::{Error, Held as _};
use locktop_tasks::schema::SchemaName;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

const TIMEOUT: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(60);
/// Delay before reconnecting after the server is lost.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) async fn run(config: &WorkerConfig, leases: i32, term: u64, seed: u64) -> Result<(), String> {
    let mut node = Node {
        info: config.info("")?,
        schema: SchemaName::new(&config.schema).map_err(|error| error.to_string())?,
        name: config.worker.clone(),
        term,
        random: config.random(seed),
    };
    loop {
        // An error means a lost server, or a term too short to learn of it.
        let _ = node.compete(leases).await;
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
    async fn compete(&mut self, leases: i32) -> Result<(), Error> {
        let mut client = connect(&self.info).await?.client;
        loop {
            let id =
                1 + i32::try_from(self.random.u64(..u64::from(leases.unsigned_abs()))).unwrap_or_default();
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

    async fn hold(&self, client: &mut Client, id: i32, lease: Lease, work: Duration) -> Result<(), Error> {
        let steps = work.as_millis() / STEP.as_millis();
        let working = async {
            let mut step = 0;
            // It is not released while the operator has a question open.
            while self.write(client, id, &lease).await? || step < steps {
                step += 1;
                tokio::time::sleep(STEP).await;
            }
            Ok::<(), Error>(())
        };
        let token = lease.token();
        let lost = match lease.run(working).await {
            Ok(Ok(())) => false,
            Ok(Err(Error::Fenced(_))) | Err(_) => true,
            Ok(Err(other)) => return Err(other),
        };
        if !lost {
            // A lease that is lost cannot be released.
            let held = lease.release().await?;
            return if held { Ok(()) } else { self.note(client, token, "release", true).await };
        }
        let mut tried = self.write(client, id, &lease).await;
        if !matches!(tried, Ok(_) | Err(Error::Fenced(_))) {
            // The server has terminated a session that was suspended in its transaction.
            *client = connect(&self.info).await?.client;
            tried = self.write(client, id, &lease).await;
        }
        let refused = match tried {
            Ok(_) => false,
            Err(Error::Fenced(_)) => true,
            Err(other) => return Err(other),
        };
        self.note(client, token, "write", refused).await
    }

    /// Writes a row that only the holder may write; returns whether the operator has a question open.
    async fn write(&self, client: &mut Client, id: i32, lease: &Lease) -> Result<bool, Error> {
        let transaction = client.transaction().await.map_err(failed)?;
        lease.fence(&transaction).await?;
        let sql = format!(
            "INSERT INTO {SCHEMA}.lease_writes (lease, token, worker) VALUES ($1, $2, $3)
             RETURNING (SELECT q.is_open FROM {SCHEMA}.lease_question q)"
        );
        let row = transaction.query_one(&sql, &[&id, &lease.token(), &self.name]).await.map_err(failed)?;
        let is_open = row.try_get(0).map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(is_open)
    }

    async fn note(&self, client: &Client, token: i64, tried: &str, refused: bool) -> Result<(), Error> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.lease_losses (token, worker, tried, refused) VALUES ($1, $2, $3, $4)"
        );
        client.execute(&sql, &[&token, &self.name, &tried, &refused]).await.map(drop).map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: tokio_postgres::Error) -> Error {
    Error::Disconnected { what: "a row of the holder".to_owned(), reason: error.to_string() }
}
