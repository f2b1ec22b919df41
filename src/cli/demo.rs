//! The options of `locktop demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::log::LogArgs;
use super::options::{SnapshotFormat, ViewArgs};
use crate::text::parse_duration;
use locktop_lab::tasks::Summary;

const TASKS: &str = "Tasks";
const HEADLESS: &str = "Without a screen";

/// `locktop demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// What locktop itself does.
    #[command(flatten)]
    pub log: LogArgs,
    /// What to play; can be given more than once [default: tasks, chain, convoy, deadlock and leases; with --headless tasks]
    #[arg(long, value_name = "NAME")]
    pub scenario: Vec<ScenarioName>,
    /// Worker processes.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<1, 500>, help_heading = TASKS)]
    pub workers: usize,
    /// Tasks, of a second to ten minutes each.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count::<1, 10_000>, help_heading = TASKS)]
    pub tasks: usize,
    /// How many times faster than real the tasks are: at 60 a minute passes in a second.
    #[arg(long, value_name = "X", default_value_t = 60.0, value_parser = time_scale, help_heading = TASKS)]
    pub time_scale: f64,
    /// Determines the tasks, what the others do, and what befalls the workers.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = TASKS)]
    pub seed: u64,
    /// Let the workers use the tables and functions that this SQL file makes, under the names of the published recipe:
    /// to see what the witness says of them.
    #[arg(long, value_name = "FILE", help_heading = TASKS)]
    pub recipe: Option<PathBuf>,
    /// No screen: play for a while, then print what came of it. Exit status 1 when something was so that must not be, such as
    /// a task at work twice at a time.
    #[arg(long, help_heading = HEADLESS)]
    pub headless: bool,
    /// How long to play [default: 20s]
    #[arg(long, value_name = "TIME", requires = "headless", value_parser = playing_time, help_heading = HEADLESS)]
    pub duration: Option<Duration>,
    /// End as soon as this number of the output is so large, and fail when it never is; can be given more than once.
    #[arg(long, value_name = "KEY=N", requires = "headless", help_heading = HEADLESS)]
    pub until: Vec<Goal>,
    /// A table for people or JSON for programs.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table, requires = "headless", help_heading = HEADLESS)]
    pub format: SnapshotFormat,
    /// Use this server in place of one of our own: a URI, a key=value string, a name from the config, or a database
    /// name. Two schemas are made in it, and removed.
    #[arg(long, value_name = "TARGET")]
    pub url: Option<String>,
    /// Directory of initdb and postgres.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub pg_bin: Option<PathBuf>,
    /// How the dashboard looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// Something to play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum ScenarioName {
    /// Workers compete for scheduled tasks; now and then one of them is lost.
    Tasks,
    /// The same, and workers are killed, stopped and cut off from the server all the time.
    Crash,
    /// The same, and some work hangs.
    Stall,
    /// One session blocks others, and they block more.
    Chain,
    /// Many wait behind one request that waits itself.
    Convoy,
    /// Sessions wait for each other.
    Deadlock,
    /// Processes compete for a few leases; some are stopped past their term, some killed.
    Leases,
    /// Fifty sessions ask for more than a rate limit lets through.
    Ratelimit,
    /// Eight sessions make ids that grow with time.
    Ids,
    /// Twenty sessions move money between ten accounts under an optimistic lock.
    Transfer,
    /// Processes work off a queue, and are killed at it.
    Queue,
    /// Processes use locks in Redis, on one server and on five; servers and processes are killed and stopped. Needs redis-server.
    #[cfg(feature = "redis")]
    Redis,
}

/// A number of the output, and how large it has to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The key in the output of a headless demo: `kills`.
    pub key: String,
    /// It has to be at least this.
    pub least: f64,
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.least)
    }
}

impl std::str::FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, least) = text.split_once('=').ok_or("expected KEY=N, such as kills=5")?;
        let least = least.parse().map_err(|_| format!("\"{least}\" is no number"))?;
        let keys = Summary::keys();
        if keys.iter().any(|known| known == key) {
            Ok(Self { key: key.to_owned(), least })
        } else {
            Err(format!("there is no \"{key}\" in the output; there are {}", keys.join(", ")))
        }
    }
}

fn count<const LEAST: usize, const MOST: usize>(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|found| (LEAST..=MOST).contains(found));
    found.ok_or_else(|| format!("expected a number from {LEAST} to {MOST}"))
}

fn time_scale(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|found| (0.1..=3_600.0).contains(found));
    found.ok_or_else(|| "expected a number from 0.1 to 3600".to_owned())
}

fn playing_time(text: &str) -> Result<Duration, String> {
    let found = parse_duration(text).filter(|found| !found.is_zero());
    found.ok_or_else(|| "expected a duration, such as 20s or 5m".to_owned())
}
