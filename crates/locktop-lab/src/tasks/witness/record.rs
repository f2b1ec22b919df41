use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use crate::scenario::SCHEMA;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

const LOOK: Duration = Duration::from_millis(200);

pub(in crate::tasks) struct Witness {
    client: Arc<Client>,
    worker: String,
    process: i32,
}

impl Witness {
    pub(in crate::tasks) async fn open(info: &ConnInfo, worker: &str, process: i32) -> Result<Self, String> {
        let info = info.clone().with_application_name(&format!("{worker} witness"));
        let client = connect(&info).await.map_err(|error| error.to_string())?.client;
        Ok(Self { client: Arc::new(client), worker: worker.to_owned(), process })
    }

    /// Returns when the connection is lost: nothing can be witnessed then.
    pub(in crate::tasks) fn lost(&self) -> impl Future<Output = ()> + use<> {
        let client = Arc::clone(&self.client);
        async move {
            while !client.is_closed() {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Reports a task that is not this session's as completed, and returns whether that counted.
    pub(in crate::tasks) async fn finish(
        &self,
        schema: String,
        task: i32,
        worker: &str,
    ) -> Result<bool, tokio_postgres::Error> {
        let sql = format!("SELECT {schema}.try_release_task_lock($1, $2, 'completed')");
        self.client.query_one(&sql, &[&task, &worker]).await?.try_get(0)
    }

    pub(in crate::tasks) async fn begin(
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

pub(in crate::tasks) struct Record<'a> {
    client: &'a Client,
    run: i64,
}

impl Record<'_> {
    pub(in crate::tasks) async fn tick(&self) -> Result<(), String> {
        let sql = format!(
            "UPDATE {SCHEMA}.witness SET before_last = last, last = clock_timestamp() WHERE run = $1"
        );
        self.client.execute(&sql, &[&self.run]).await.map(drop).map_err(|error| told(&error))
    }

    pub(in crate::tasks) async fn end(&self, outcome: &str) -> Result<(), String> {
        let sql =
            format!("UPDATE {SCHEMA}.witness SET ended = clock_timestamp(), outcome = $2 WHERE run = $1");
        self.client.execute(&sql, &[&self.run, &outcome]).await.map(drop).map_err(|error| told(&error))
    }
}

fn told(error: &tokio_postgres::Error) -> String {
    format!("the witness could not write: {error}")
}
