use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;

use super::{Failure, configured, dashboard, env};
use crate::cli::settings::CliSettings;
use crate::cli::{DemoArgs, Goal, ScenarioName, SnapshotFormat};
use crate::clock;
use crate::config::NamedLock;
use crate::demo::contest::Contest;
use crate::demo::scenario::{EXPORT_KEY, PAYOUT_KEY, Scenario};
use crate::demo::tasks::{Outcome, RunningContests, Summary, TasksOptions, child};
use crate::demo::{DemoError, DemoOptions, Language};
use crate::model::lock_key::LockKey;
use crate::redis::RedisUrl;
use crate::runtime::signals;
use crate::runtime::signals::ending;

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        Self::Other(error.to_string())
    }
}

/// Connections of everything except workers, and of each worker.
const CONNECTIONS: usize = 300;
const EACH: usize = 4;
const PREPARED: usize = 10;

/// The tables of a demo that are not in the default schema.
const TABLES: [&str; 6] =
    ["scheduled_tasks", "task_execution_log", "task_queue", "distlock", "rate_limit", "id_generator"];

pub(super) async fn run(mut settings: CliSettings, arguments: &DemoArgs) -> Result<u8, Failure> {
    if arguments.headless {
        let options = options(&settings, arguments)?;
        if options.tasks.is_none() {
            let names: Vec<&str> = Contest::ALL.iter().map(|contest| contest.as_str()).collect();
            return Err(Failure::Usage(format!(
                "--headless counts results: --scenario must be tasks, crash, stall, {}",
                names.join(", ")
            )));
        }
        return Box::pin(headless(options, arguments)).await;
    }
    dashboard::needs_terminal(dashboard::ONE_SNAPSHOT)?;
    signals::end_the_screens();
    let options = options(&settings, arguments)?;
    let grace = options.tasks.as_ref().map(TasksOptions::orphan_grace);
    if let Some(tasks) = &options.tasks {
        settings.config.thresholds.orphan_grace = tasks.orphan_grace();
        settings.config.thresholds.task_overdue = tasks.overdue();
    }
    name_locks(&mut settings, language(arguments));
    let (hint, question) = (hint(&options), options.question.clone());
    let demo = locktop_lab::run(options).await?;
    if let Some(contests) = demo.contests.as_ref().filter(|_| demo.server.is_none()) {
        for table in TABLES {
            settings.config.tables.insert(table, format!("{}.{table}", contests.schema().as_str()));
        }
    }
    let redis = demo.contests.as_ref().map(RunningContests::redis).unwrap_or_default();
    for set in redis {
        // The launcher's URLs are valid and distinct.
        let _ = settings.redis.sets.add(set.iter().filter_map(|url| RedisUrl::parse(url).ok()).collect());
    }
    let mut info = demo.info.clone().with_application_name("locktop");
    if let Some(grace) = grace.filter(|_| demo.server.is_none()) {
        // Use the same grace period as the workers. The demo's own server has it as a setting.
        info = info.with_setting("locktop.orphan_grace", &format!("{grace} s"));
    }
    let target = if demo.server.is_some() { "demo".to_owned() } else { info.describe() };
    let word = demo.server.is_none().then(|| "demo".to_owned());
    let asking = Box::new(move |is_open| question.set_open(is_open));
    let note = dashboard::Demo { word, hint, asking };
    let shown = Box::pin(dashboard::show(&settings, info, target, Some(note))).await;
    let stopped = demo.stop().await;
    let status = shown?;
    stopped?;
    Ok(status)
}

/// Width of the hint: that of the smallest common terminal.
const COLUMNS: usize = 80;

fn hint(options: &DemoOptions) -> String {
    let tasks = options.tasks.as_ref();
    let plays = |contest| tasks.is_some_and(|tasks| tasks.contests.contains(&contest));
    let tries = [
        (options.scenarios.contains(&Scenario::Chain), "psql-anna did not commit: press K, y"),
        (
            options.scenarios.contains(&Scenario::Convoy),
            "all wait for a migration, which waits for a report: C, y",
        ),
        (tasks.is_some_and(|tasks| tasks.stall), "a task hangs: 4, R on a slow task, y"),
        (tasks.is_some_and(|tasks| tasks.workers > 0), "Orphans: 4, R, y"),
        (plays(Contest::Leases), "Leases: 5, U, then the number it asks for"),
        (plays(Contest::Queue), "Lost items: 6, R, y"),
    ];
    let mut said = String::new();
    for (_, words) in tries.into_iter().filter(|(is_there, _)| *is_there) {
        let longer = if said.is_empty() { words.to_owned() } else { format!("{said}. {words}") };
        if said.is_empty() || line(&longer).len() <= COLUMNS {
            said = longer;
        }
    }
    line(if said.is_empty() { "screens: 1 to 9" } else { &said })
}

fn line(said: &str) -> String {
    format!("demo: {said}. ? help, q quit")
}

pub(super) async fn worker() -> Result<u8, Failure> {
    Box::pin(child::run()).await.map_err(Failure::Other)?;
    Ok(0)
}

fn options(settings: &CliSettings, arguments: &DemoArgs) -> Result<DemoOptions, Failure> {
    let mut options = DemoOptions { url: settings.conninfo.clone(), ..DemoOptions::default() };
    options.server.bin.clone_from(&arguments.pg_bin);
    let connections = CONNECTIONS + EACH * arguments.workers;
    // A demo may run for days, so autovacuum is on.
    options.server = options.server.with("max_connections", connections).with("autovacuum", "on");
    options.server = options.server.with("max_prepared_transactions", PREPARED);
    let named = &arguments.scenario;
    // By default scenarios run in turn; named scenarios all run at once.
    options.in_turn = named.is_empty();
    let asked = |name: ScenarioName| named.contains(&name);
    let scenario =
        |name: &ScenarioName| Scenario::ALL.iter().copied().find(|one| is_named(*name, one.as_str()));
    options.scenarios = match (named.is_empty(), arguments.headless) {
        (true, false) => Scenario::DEMO.into(),
        (true, true) => Vec::new(),
        (false, _) => named.iter().filter_map(scenario).collect(),
    };
    if options.url.is_some() && asked(ScenarioName::Prepared) {
        let why = "--scenario prepared needs the demo's own server, which permits prepared transactions";
        return Err(Failure::Usage(why.to_owned()));
    }
    if named.is_empty() && !arguments.headless {
        options.aside = vec![Scenario::SessionLock];
        options.aside.extend(options.url.is_none().then_some(Scenario::Prepared));
    }
    let tasks = [ScenarioName::Tasks, ScenarioName::Crash, ScenarioName::Stall];
    let contests = contests(named, !arguments.headless && arguments.recipe.is_none());
    let played = named.is_empty() || tasks.into_iter().any(asked);
    if !contests.is_empty() && arguments.recipe.is_some() {
        return Err(Failure::Usage("--recipe is for the scenarios tasks, crash and stall".to_owned()));
    }
    if played || !contests.is_empty() {
        options.tasks = Some(TasksOptions {
            crash: asked(ScenarioName::Crash),
            stall: asked(ScenarioName::Stall),
            workers: if played { arguments.workers } else { 0 },
            tasks: if played { arguments.tasks } else { 0 },
            time_scale: arguments.time_scale,
            language: language(arguments),
            seed: arguments.seed,
            headless: arguments.headless,
            recipe: recipe(arguments)?,
            contests,
            question: options.question.clone(),
            ..TasksOptions::new(std::env::current_exe()?)
        });
    }
    Ok(options)
}

/// Names the advisory locks of the scenarios, unless the config does.
fn name_locks(settings: &mut CliSettings, language: Language) {
    for ((first, second), names) in
        [(EXPORT_KEY, ("nightly export", "夜间导出")), (PAYOUT_KEY, ("payout run", "批量付款"))]
    {
        let key = LockKey::Pair(first, second);
        if settings.config.lock_names.iter().all(|named| named.key != key) {
            settings.config.lock_names.push(NamedLock {
                key,
                name: language.of(names).to_owned(),
                database: None,
            });
        }
    }
}

fn language(arguments: &DemoArgs) -> Language {
    arguments.language.unwrap_or_else(|| of_locale(&env))
}

fn of_locale(env: &dyn Fn(&str) -> Option<String>) -> Language {
    if configured::locale("LC_MESSAGES", env).starts_with("zh") {
        Language::Chinese
    } else {
        Language::English
    }
}

fn recipe(arguments: &DemoArgs) -> Result<Option<String>, Failure> {
    let Some(file) = &arguments.recipe else { return Ok(None) };
    let text = std::fs::read_to_string(file);
    text.map(Some).map_err(|error| Failure::Other(format!("{}: {error}", file.display())))
}

/// Contests and states have the names that the command line has for them.
fn is_named(name: ScenarioName, of: &str) -> bool {
    name.to_possible_value().is_some_and(|value| value.get_name() == of)
}

/// The contests of the named scenarios, each once, in the order of [`Contest::ALL`]. Without names, contests for the
/// screens that would otherwise be empty.
fn contests(named: &[ScenarioName], has_dashboard: bool) -> Vec<Contest> {
    if named.is_empty() && has_dashboard {
        return vec![Contest::Leases, Contest::Queue];
    }
    let asked = |contest: &Contest| named.iter().any(|name| is_named(*name, contest.as_str()));
    Contest::ALL.iter().copied().filter(asked).collect()
}

const DURATION: Duration = Duration::from_secs(20);
/// Poll interval for `--until`.
const POLL: Duration = Duration::from_millis(250);
/// Interval of the progress line.
const REPORT: Duration = Duration::from_secs(5);

/// Runs without a screen for some time, prints a summary, and fails if an invariant was violated.
async fn headless(options: DemoOptions, arguments: &DemoArgs) -> Result<u8, Failure> {
    // Catch signals from here on, so that an early Ctrl-C leaves nothing half done.
    let interrupted = ending()?;
    let mut demo = locktop_lab::run(options).await?;
    let played = match &mut demo.contests {
        Some(contests) => Box::pin(run_to_end(contests, arguments, interrupted)).await,
        None => Err(Failure::Other("no scenario with tasks was given".to_owned())),
    };
    let stopped = demo.stop().await;
    let (outcome, missed) = played?;
    // The violations come first: a failed cleanup must not hide them.
    let left = stopped.err().map(|error| error.to_string());
    let broken: Vec<String> = outcome.violations.into_iter().chain(missed).chain(left).collect();
    print(&outcome.summary, arguments.format, broken.is_empty())?;
    if broken.is_empty() { Ok(0) } else { Err(Failure::Other(broken.join("\n"))) }
}

/// Runs to the end, and returns the numbers and which goals were missed.
async fn run_to_end(
    contests: &mut RunningContests,
    arguments: &DemoArgs,
    interrupted: impl Future<Output = u8>,
) -> Result<(Outcome, Option<String>), Failure> {
    let duration = arguments.duration.unwrap_or(DURATION);
    let goals = &arguments.until;
    let ended = tokio::select! {
        failed = report(contests, duration) => failed.map(|()| None),
        reached = reach(contests, goals) => reached.map(|()| None),
        () = tokio::time::sleep(duration) => Ok(Some(format!("not within {duration:?}"))),
        _ = interrupted => Ok(Some("not before it was interrupted".to_owned())),
    };
    let outcome = contests.finish().await?;
    let in_vain = ended?;
    let left: Vec<String> =
        goals.iter().filter(|goal| !is_reached(goal, &outcome.summary)).map(ToString::to_string).collect();
    let missed = in_vain.filter(|_| !left.is_empty()).map(|why| format!("{why}: {}", left.join(", ")));
    Ok((outcome, missed))
}

/// Returns when all goals are reached; never if there are none.
async fn reach(contests: &RunningContests, goals: &[Goal]) -> Result<(), DemoError> {
    if goals.is_empty() {
        std::future::pending::<()>().await;
    }
    loop {
        let outcome = contests.outcome().await?;
        if goals.iter().all(|goal| is_reached(goal, &outcome.summary)) {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Prints the progress to a terminal. Returns only on an error.
async fn report(contests: &RunningContests, duration: Duration) -> Result<(), DemoError> {
    if !io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let started = clock::monotonic();
    loop {
        tokio::time::sleep(REPORT).await;
        let summary = contests.outcome().await?.summary;
        let number = |key| summary.value(key).unwrap_or_default();
        let (executions, recovered) = (number("executions"), number("recovered"));
        let passed = started.elapsed().as_secs();
        // The terminal may be closed.
        let _ = writeln!(
            io::stderr(),
            "{passed} of {} s: {executions} executions, {recovered} recovered",
            duration.as_secs()
        );
    }
}

fn is_reached(goal: &Goal, summary: &Summary) -> bool {
    summary.value(&goal.key).is_some_and(|value| value >= goal.least)
}

fn print(summary: &Summary, format: SnapshotFormat, is_well: bool) -> Result<u8, Failure> {
    super::print(&match format {
        SnapshotFormat::Json => serde_json::to_string(summary)?,
        SnapshotFormat::Table => format!("{}\n{}", summary.verdict(is_well), summary.table()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Language, of_locale};

    #[test]
    fn the_first_variable_of_the_locale_decides() {
        let of = |set: &[(&str, &str)]| {
            of_locale(&|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), Language::English);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8")]), Language::Chinese);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8"), ("LC_MESSAGES", "en_GB")]), Language::English);
        assert_eq!(of(&[("LC_ALL", "zh"), ("LC_MESSAGES", "en_GB")]), Language::Chinese);
        assert_eq!(of(&[("LC_ALL", ""), ("LANG", "zh_TW")]), Language::Chinese);
    }
}
