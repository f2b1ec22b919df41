//! The two that are compared, by the statements that a worker says.

use std::fmt;
use std::time::Duration;

/// The printed text that the tests of the schema are about.
const ARTICLE: &str = include_str!("../../tests/server/schema/article.sql");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// The schema of locktop, with workers that do as its comments say.
    Ours,
    /// The printed recipe, with a pause after each time that nothing was given.
    Recipe { pause: Duration },
}

impl System {
    pub(crate) fn database(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Recipe { .. } => "recipe",
        }
    }

    /// Asks for tasks ($1: worker, $2: how many at most); the first column is the task, or null.
    pub(crate) fn acquire(self, batch: i32) -> &'static str {
        match self {
            Self::Ours => "SELECT task_id FROM locktop.fetch_tasks($1, $2)",
            // It takes one at a time; the parameter is there so that both are called alike.
            Self::Recipe { .. } if batch == 1 => {
                "SELECT task_id FROM worker_fetch_and_execute_task($1) WHERE $2 = 1"
            }
            Self::Recipe { .. } => "SELECT task_id FROM try_acquire_multiple_tasks($1, $2)",
        }
    }

    /// Ends one task ($1: task, $2: worker).
    pub(crate) fn release(self) -> &'static str {
        match self {
            Self::Ours => "SELECT locktop.try_release_task_lock($1, $2, 'completed')",
            Self::Recipe { .. } => "SELECT release_task_lock($1, $2, 'completed') IS NOT NULL",
        }
    }

    /// Empties the log and makes so many tasks due, with the schedules that are printed.
    pub(crate) fn fill(self, tasks: usize) -> String {
        let schema = match self {
            Self::Ours => "locktop",
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
            Self::Ours => f.write_str("ours"),
            Self::Recipe { pause } => write!(f, "recipe, pause {} ms", pause.as_millis()),
        }
    }
}

/// The printed tables and functions. The repair says which is meant where a column and an output parameter have one name;
/// without it two of the functions fail at their first call.
pub(crate) fn recipe() -> String {
    ["tables", "acquire", "release", "fetch", "multiple"].map(printed).concat()
}

fn printed(name: &str) -> String {
    let block = ARTICLE.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap();
    block.replace("AS $$\n", "AS $$\n#variable_conflict use_column\n")
}
