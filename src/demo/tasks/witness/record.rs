//! The worker's side: giving signs.

use tokio_postgres::Client;

use crate::demo::scenario::SCHEMA;
use crate::pg::connect::connect;
use crate::pg::conninfo::ConnInfo;

/// One worker's connection for witnessing.
pub(in crate::demo::tasks) struct Witness {
    client: Client,
    worker: String,
    process: i32,
}

impl Witness {
    pub(in crate::demo::tasks) async fn open(
        info: &ConnInfo,
        worker: &str,
        process: i32,
    ) -> Result<Self, String> {
        let info = info.clone().with_application_name(&format!("{worker} witness"));
        let client = connect(&info).await.map_err(|error| error.to_string())?.client;
        Ok(Self { client, worker: worker.to_owned(), process })
    }

    /// Work begins: only once this is written.
    pub(in crate::demo::tasks) async fn begin(
        &self,
        task: i32,
        execution: Option<i64>,
    ) -> Result<Record<'_>, String> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.witness (task_id, execution_id, worker, process, pid)
             VALUES ($1, $2, $3, $4, $5) RETURNING run"
        );
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let row = self.client.query_one(&sql, &[&task, &execution, &self.worker, &self.process, &pid]).await;
        let run = row.and_then(|row| row.try_get(0)).map_err(|error| told(&error))?;
        Ok(Record { client: &self.client, run })
    }
}

/// The record of one piece of work.
pub(in crate::demo::tasks) struct Record<'a> {
    client: &'a Client,
    run: i64,
}

impl Record<'_> {
    /// A sign: it is still at work.
    pub(in crate::demo::tasks) async fn tick(&self) -> Result<(), String> {
        let sql = format!(
            "UPDATE {SCHEMA}.witness SET before_last = last, last = clock_timestamp() WHERE run = $1"
        );
        self.client.execute(&sql, &[&self.run]).await.map(drop).map_err(|error| told(&error))
    }

    /// It has stopped working.
    pub(in crate::demo::tasks) async fn end(&self, outcome: &str) -> Result<(), String> {
        let sql =
            format!("UPDATE {SCHEMA}.witness SET ended = clock_timestamp(), outcome = $2 WHERE run = $1");
        self.client.execute(&sql, &[&self.run, &outcome]).await.map(drop).map_err(|error| told(&error))
    }
}

fn told(error: &tokio_postgres::Error) -> String {
    format!("the witness could not write: {error}")
}
