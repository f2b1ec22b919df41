use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::log::LogArgs;
use super::options::{SnapshotFormat, ViewArgs, one_of, time};
use locktop_lab::Language;
use locktop_lab::tasks::Summary;

const NANO: Duration = Duration::from_nanos(1);
const TASKS: &str = "Tasks";
const HEADLESS: &str = "Without a screen";

#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// Scenario to run; can be given more than once [default: tasks, chain, convoy, deadlock, session-lock, prepared, leases
    /// and queue; with --headless tasks]
    #[arg(long, value_name = "NAME")]
    pub scenario: Vec<ScenarioName>,
    /// Worker processes.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<1, 500>, help_heading = TASKS)]
    pub workers: usize,
    /// Number of tasks; each takes a second to ten minutes, divided by the time scale.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count::<1, 10_000>, help_heading = TASKS)]
    pub tasks: usize,
    /// Speed of the tasks: at 60, a task of a minute takes a second.
    #[arg(long, value_name = "X", default_value_t = 60.0, value_parser = time_scale, help_heading = TASKS)]
    pub time_scale: f64,
    /// Language of the names of tasks, queue items and locks [default: zh in a Chinese locale, otherwise en]
    #[arg(long, value_name = "LANGUAGE", value_parser = one_of(LANGUAGES))]
    pub language: Option<Language>,
    /// Seed of the random choices: the tasks, the sessions, and the failures of workers.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = TASKS)]
    pub seed: u64,
    /// Run the workers on the tables and functions that this SQL file creates, in place of locktop's, and count runs that overlap.
    /// They need the names that the manual calls published.
    #[arg(long, value_name = "FILE", help_heading = TASKS)]
    pub recipe: Option<PathBuf>,
    /// Run without a screen for some time, then print a summary; exit with 1 if an invariant was violated, such as a task
    /// that ran twice at the same time.
    #[arg(long, help_heading = HEADLESS)]
    pub headless: bool,
    /// How long to run [default: 20s]
    #[arg(long, value_name = "TIME", requires = "headless", value_parser = time(NANO.., ", such as 20s or 5m"), help_heading = HEADLESS)]
    pub duration: Option<Duration>,
    /// Exit when this number of the output reaches N; fail if it does not within --duration. Can be given more than once.
    #[arg(long, value_name = "KEY=N", requires = "headless", help_heading = HEADLESS)]
    pub until: Vec<Goal>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = SnapshotFormat::Table, requires = "headless", help_heading = HEADLESS)]
    pub format: SnapshotFormat,
    /// Use this server instead of a temporary one: a URI, a key=value string, a name from the config, or a database name.
    /// Two schemas are created in it, and dropped at the end.
    #[arg(long, value_name = "TARGET")]
    pub url: Option<String>,
    /// Directory with initdb and postgres.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub pg_bin: Option<PathBuf>,
    #[command(flatten)]
    pub view: ViewArgs,
}

const LANGUAGES: [(&str, &str, Language); 2] =
    [("en", "English", Language::English), ("zh", "Chinese", Language::Chinese)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum ScenarioName {
    /// Workers compete for scheduled tasks; sometimes one of them dies.
    Tasks,
    /// As tasks, but workers are often killed, stopped and disconnected.
    Crash,
    /// As tasks, but some tasks hang.
    Stall,
    /// One session blocks others, which block more.
    Chain,
    /// Many sessions wait behind one request that itself waits.
    Convoy,
    /// Sessions wait for each other until the server breaks the deadlock.
    Deadlock,
    /// Two sessions wait for an advisory lock that an idle session holds.
    SessionLock,
    /// Prepared transactions block sessions. Not with --url.
    Prepared,
    /// Processes compete for a few leases; some are stopped until the lease has expired, some are killed.
    Leases,
    /// Fifty sessions request more than a rate limit permits.
    Ratelimit,
    /// Eight sessions generate ids that grow with time.
    Ids,
    /// Twenty sessions move money between ten accounts, with an optimistic lock.
    Transfer,
    /// Processes take items of a queue, and are killed while they work.
    Queue,
    /// Processes take locks in Redis, on one server and on five; servers and processes are killed and stopped. Needs redis-server.
    #[cfg(feature = "redis")]
    Redis,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The key in the output of a headless demo, such as `kills`.
    pub key: String,
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
            Err(format!("unknown number \"{key}\": the output has {}", keys.join(", ")))
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
