//! Before the play: a schema that is nobody else's, the tasks in it, and the first workers.

use tokio_postgres::Client;

use super::contest::Tasks;
use super::ground::{Ground, TASKS_SCHEMA};
use super::play::{self, Play};
use super::shared::Shared;
use super::{TasksError, TasksOptions};
use crate::contest::Place;
use crate::workers::{Orders, Part};
use locktop_tasks::schema::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// The settings of the sessions: when something is an orphan, and where the functions of a recipe are.
fn settings(info: &ConnInfo, schema: &SchemaName, options: &TasksOptions, grace: f64) -> ConnInfo {
    let grace = format!("{}ms", (grace * 1_000.0).round());
    let info = info.clone().with_setting("locktop.orphan_grace", &grace);
    if options.recipe.is_none() {
        return info;
    }
    info.with_setting("search_path", &format!("{},public", schema.as_str()))
}

/// The schema of a play that has not begun.
#[derive(Debug)]
pub struct Claim {
    info: ConnInfo,
    ground: Ground,
    client: Client,
    options: TasksOptions,
}

impl Claim {
    /// Makes the schema, which nobody else may have. `embedded`: the server is the demo's own.
    ///
    /// # Errors
    /// When the server refuses, or a schema of the name is there.
    pub async fn make(info: &ConnInfo, embedded: bool, options: TasksOptions) -> Result<Self, TasksError> {
        let name =
            if embedded { SchemaName::default() } else { SchemaName::new(TASKS_SCHEMA).unwrap_or_default() };
        let ground = Ground {
            info: settings(info, &name, &options, options.orphan_grace()),
            schema: name,
            recipe: options.recipe.is_some(),
        };
        let client = ground.claim(options.recipe.as_deref()).await?;
        Ok(Self { info: info.clone(), ground, client, options })
    }

    /// Puts the tasks in, and starts the workers. When that fails, the schema is removed.
    ///
    /// # Errors
    /// When the server refuses, or there is no program to start.
    pub async fn start(self) -> Result<Play, TasksError> {
        let ground = self.ground.clone();
        match self.begin().await {
            Ok(play) => Ok(play),
            Err(error) => {
                // The first error is the one to tell.
                let _ = play::remove(&ground).await;
                Err(error)
            }
        }
    }

    async fn begin(self) -> Result<Play, TasksError> {
        let Self { info, ground, client, options } = self;
        ground.make_witness_table(&client).await?;
        let plan = options.plan();
        ground.insert_tasks(&client, &plan).await?;
        let workers = settings(&info, &ground.schema, &options, options.takeover());
        let orders = Orders {
            conninfo: workers.to_key_value(),
            schema: ground.schema.as_str().to_owned(),
            worker: "worker".to_owned(),
            process: 0,
            part: Part::Tasks,
            recipe: ground.recipe,
            plan,
        };
        let place = Place {
            info: ground.info.clone(),
            schema: ground.schema.clone(),
            program: options.program.clone(),
            orders,
            seed: options.seed,
            counted: options.counted,
            audience: options.audience.clone(),
        };
        let contests = options.contests.clone();
        let mut begun = Play::new(ground.clone(), options.seed);
        if options.workers > 0 {
            begun.add(Box::new(Tasks::begin(&place, Shared { ground, options, plan })?));
        }
        for contest in contests {
            begun.add(Box::pin(contest.begin(&place, &client)).await?);
        }
        Ok(begun)
    }

    /// Removes the schema.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn give_up(self) -> Result<(), TasksError> {
        play::remove(&self.ground).await
    }
}
