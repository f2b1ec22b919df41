//! Preparation of the contests: a schema of the demo's own, the tasks in it, and the first workers.

use tokio_postgres::Client;

use super::contest::TaskContest;
use super::running::{self, RunningContests};
use super::shared::Shared;
use super::tables::{TASKS_SCHEMA, TaskTables};
use super::{TasksError, TasksOptions};
use crate::contest::Environment;
use crate::workers::{WorkerConfig, WorkerRole};
use locktop_tasks::schema::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// The settings of the sessions: when an execution is an orphan, and the search path for a recipe's functions.
fn settings(info: &ConnInfo, schema: &SchemaName, options: &TasksOptions, grace: f64) -> ConnInfo {
    let grace = format!("{}ms", (grace * 1_000.0).round());
    let info = info.clone().with_setting("locktop.orphan_grace", &grace);
    if options.recipe.is_none() {
        return info;
    }
    info.with_setting("search_path", &format!("{},public", schema.as_str()))
}

#[derive(Debug)]
pub struct PreparedContests {
    info: ConnInfo,
    tables: TaskTables,
    client: Client,
    options: TasksOptions,
}

impl PreparedContests {
    /// Creates the schema, which must not exist. `embedded`: the server is the demo's own.
    pub async fn create(info: &ConnInfo, embedded: bool, options: TasksOptions) -> Result<Self, TasksError> {
        let name =
            if embedded { SchemaName::default() } else { SchemaName::new(TASKS_SCHEMA).unwrap_or_default() };
        let tables = TaskTables {
            info: settings(info, &name, &options, options.orphan_grace()),
            schema: name,
            recipe: options.recipe.is_some(),
        };
        let client = tables.create(options.recipe.as_deref()).await?;
        Ok(Self { info: info.clone(), tables, client, options })
    }

    /// Inserts the tasks and starts the workers. If that fails, the schema is removed.
    pub async fn start(self) -> Result<RunningContests, TasksError> {
        let tables = self.tables.clone();
        match self.begin().await {
            Ok(contests) => Ok(contests),
            Err(error) => {
                // The first error is the one to report.
                let _ = running::remove(&tables).await;
                Err(error)
            }
        }
    }

    async fn begin(self) -> Result<RunningContests, TasksError> {
        let Self { info, tables, client, options } = self;
        tables.make_witness_table(&client).await?;
        let plan = options.plan();
        tables.insert_tasks(&client, &plan).await?;
        let workers = settings(&info, &tables.schema, &options, options.takeover());
        let config = WorkerConfig {
            conninfo: workers.to_key_value(),
            schema: tables.schema.as_str().to_owned(),
            worker: "worker".to_owned(),
            process: 0,
            role: WorkerRole::Tasks,
            recipe: tables.recipe,
            plan,
        };
        let environment = Environment {
            info: tables.info.clone(),
            schema: tables.schema.clone(),
            program: options.program.clone(),
            config,
            seed: options.seed,
            headless: options.headless,
            question: options.question.clone(),
        };
        let contests = options.contests.clone();
        let mut running = RunningContests::new(tables.clone(), options.seed);
        if options.workers > 0 {
            running.add(Box::new(TaskContest::begin(&environment, Shared { tables, options, plan })?));
        }
        for contest in contests {
            running.add(Box::pin(contest.begin(&environment, &client)).await?);
        }
        Ok(running)
    }

    pub async fn remove(self) -> Result<(), TasksError> {
        running::remove(&self.tables).await
    }
}
