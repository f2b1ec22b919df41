//! The two systems that are compared, as the statements that a worker sends.

use std::fmt;
use std::time::Duration;

/// The article's SQL, which the tests of the schema use too.
const ARTICLE: &str = include_str!("../../tests/server/schema/article.sql");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// The schema of locktop; workers follow its comments.
    Locktop,
    /// The printed recipe, with a pause after each request that returned no task.
    Recipe { pause: Duration },
}

impl System {
    pub(crate) fn database(self) -> &'static str {
        match self {
            Self::Locktop => "locktop",
            Self::Recipe { .. } => "recipe",
        }
    }

    /// Requests tasks ($1: worker, $2: maximum number); the first column is the task, or null.
    pub(crate) fn acquire(self, batch: i32) -> &'static str {
        match self {
            Self::Locktop => "SELECT task_id FROM locktop.fetch_tasks($1, $2)",
            // It acquires one task; the parameter exists so that both are called alike.
            Self::Recipe { .. } if batch == 1 => {
                "SELECT task_id FROM worker_fetch_and_execute_task($1) WHERE $2 = 1"
            }
            Self::Recipe { .. } => "SELECT task_id FROM try_acquire_multiple_tasks($1, $2)",
        }
    }

    /// Completes one task ($1: task, $2: worker).
    pub(crate) fn release(self) -> &'static str {
        match self {
            Self::Locktop => "SELECT locktop.try_release_task_lock($1, $2, 'completed')",
            Self::Recipe { .. } => "SELECT release_task_lock($1, $2, 'completed') IS NOT NULL",
        }
    }

    /// Empties the log and makes `tasks` tasks due, with the schedules of the article.
    pub(crate) fn fill(self, tasks: usize) -> String {
        let schema = match self {
            Self::Locktop => "locktop",
            Self::Recipe { .. } => "public",
        };
        format!(
            "SET search_path = {schema};
             TRUNCATE task_execution_log, scheduled_tasks;
             INSERT INTO scheduled_tasks (task_name, task_type, schedule_cron, next_run_at)
             SELECT 'task ' || n, 'x', ('{{*/5 * * * *,0 * * * *,0 2 * * *}}'::text[])[1 + n % 3],
                    now() - interval '1 hour' + n * interval '10 ms'
               FROM generate_series(1, {tasks}) n"
        )
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locktop => f.write_str("locktop"),
            Self::Recipe { pause } => write!(f, "recipe, pause {} ms", pause.as_millis()),
        }
    }
}

/// The tables and functions of the article. `use_column` resolves names that are both a column and an output parameter;
/// without it two of the functions fail at their first call.
pub(crate) fn recipe() -> String {
    ["tables", "acquire", "release", "fetch", "multiple"].map(printed).concat()
}

fn printed(name: &str) -> String {
    let block = ARTICLE.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap();
    block.replace("AS $$\n", "AS $$\n#variable_conflict use_column\n")
}
