//! Adapters: the files that describe other job systems, and the choices of the config.
//!
//! The files of `assets/adapters` are compiled in. Files `adapters/*.toml` next to the config are added, and replace a
//! built-in adapter of the same name. Every mistake is reported with file, line and column.

mod choices;
mod file;
mod queries;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use choices::choices;
pub use choices::{AdapterChoice, AdapterChoices};

use super::reader::{ConfigReader, TomlValue};
use super::{ConfigError, Mistake, Position};
use crate::model::Text;
use crate::model::adapter::{Adapter, Setting};
use crate::text::parse_duration;

use crate::order::SortExt;
pub(crate) use queries::section;

const BUILT_IN: &[(&str, &str)] = &[
    ("absurd", include_str!("../../../assets/adapters/absurd.toml")),
    ("airflow", include_str!("../../../assets/adapters/airflow.toml")),
    ("apscheduler", include_str!("../../../assets/adapters/apscheduler.toml")),
    ("camunda", include_str!("../../../assets/adapters/camunda.toml")),
    ("chancy", include_str!("../../../assets/adapters/chancy.toml")),
    ("db_scheduler", include_str!("../../../assets/adapters/db_scheduler.toml")),
    ("dbos", include_str!("../../../assets/adapters/dbos.toml")),
    ("delayed_job", include_str!("../../../assets/adapters/delayed_job.toml")),
    ("django_tasks", include_str!("../../../assets/adapters/django_tasks.toml")),
    ("dramatiq_pg", include_str!("../../../assets/adapters/dramatiq_pg.toml")),
    ("good_job", include_str!("../../../assets/adapters/good_job.toml")),
    ("graphile_worker", include_str!("../../../assets/adapters/graphile_worker.toml")),
    ("hangfire", include_str!("../../../assets/adapters/hangfire.toml")),
    ("jobrunr", include_str!("../../../assets/adapters/jobrunr.toml")),
    ("laravel", include_str!("../../../assets/adapters/laravel.toml")),
    ("liquibase", include_str!("../../../assets/adapters/liquibase.toml")),
    ("oban", include_str!("../../../assets/adapters/oban.toml")),
    ("odoo_queue_job", include_str!("../../../assets/adapters/odoo_queue_job.toml")),
    ("pg_boss", include_str!("../../../assets/adapters/pg_boss.toml")),
    ("pg_cron", include_str!("../../../assets/adapters/pg_cron.toml")),
    ("pg_timetable", include_str!("../../../assets/adapters/pg_timetable.toml")),
    ("pgmq", include_str!("../../../assets/adapters/pgmq.toml")),
    ("pgqueuer", include_str!("../../../assets/adapters/pgqueuer.toml")),
    ("procrastinate", include_str!("../../../assets/adapters/procrastinate.toml")),
    ("quartz", include_str!("../../../assets/adapters/quartz.toml")),
    ("que", include_str!("../../../assets/adapters/que.toml")),
    ("river", include_str!("../../../assets/adapters/river.toml")),
    ("shedlock", include_str!("../../../assets/adapters/shedlock.toml")),
    ("solid_queue", include_str!("../../../assets/adapters/solid_queue.toml")),
    ("spring_batch", include_str!("../../../assets/adapters/spring_batch.toml")),
    ("spring_lock", include_str!("../../../assets/adapters/spring_lock.toml")),
    ("symfony_messenger", include_str!("../../../assets/adapters/symfony_messenger.toml")),
];
/// Largest adapter file, in bytes.
const LONGEST: u64 = 256 << 10;
/// Most adapter files of a user.
const MOST: usize = 100;

/// Parses an adapter; mistakes are reported for `file`.
pub fn parse_adapter(text: &str, file: &Path) -> Result<Adapter, ConfigError> {
    super::reader::parse(text, file, file::adapter)
}

pub fn read_adapter(path: &Path) -> Result<Adapter, ConfigError> {
    let unreadable =
        |error| ConfigError::Unreadable { what: "the file of an adapter", path: path.to_owned(), error };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LONGEST {
        let message = format!("the file has {length} bytes, more than {LONGEST}");
        let mistakes = vec![Mistake { at: Position { line: 1, column: 1 }, message }];
        return Err(ConfigError::Mistakes { file: path.to_owned(), mistakes });
    }
    parse_adapter(&std::fs::read_to_string(path).map_err(unreadable)?, path)
}

/// The built-in adapters. A test detects mistakes in them.
pub fn built_in() -> Result<Vec<Adapter>, ConfigError> {
    let each = BUILT_IN.iter().map(|(name, text)| {
        let path = PathBuf::from(format!("assets/adapters/{name}.toml"));
        Ok(Adapter { is_built_in: true, ..parse_adapter(text, &path)? })
    });
    each.collect()
}

/// The adapters in use, sorted by name: the built-in ones and those of the directory `adapters` next to the config, with
/// the settings of the config and without those that it switches off.
pub fn adapters(choices: &AdapterChoices, config: Option<&Path>) -> Result<Vec<Arc<Adapter>>, ConfigError> {
    if !choices.is_enabled {
        return Ok(Vec::new());
    }
    let mut adapters = built_in()?;
    for (_, adapter) in own(config)? {
        adapters.retain(|other| other.name != adapter.name);
        adapters.push(adapter);
    }
    adapters.order_by(|one, other| one.name.cmp(&other.name));
    let mistakes = choices.apply(&mut adapters);
    if !mistakes.is_empty() {
        return Err(ConfigError::Mistakes { file: config.unwrap_or(Path::new("")).to_owned(), mistakes });
    }
    Ok(adapters.into_iter().map(Arc::new).collect())
}

/// The user's adapters; none if the directory does not exist.
fn own(config: Option<&Path>) -> Result<Vec<(PathBuf, Adapter)>, ConfigError> {
    let Some(folder) = config.and_then(Path::parent).map(|folder| folder.join("adapters")) else {
        return Ok(Vec::new());
    };
    let unreadable =
        |error| ConfigError::Unreadable { what: "the directory of adapters", path: folder.clone(), error };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let start = Position { line: 1, column: 1 };
    if paths.len() > MOST {
        let message = format!("{} files, more than {MOST}", paths.len());
        return Err(ConfigError::Mistakes { file: folder, mistakes: vec![Mistake { at: start, message }] });
    }
    let (mut found, mut errors) = (Vec::<(PathBuf, Adapter)>::new(), Vec::new());
    for path in paths {
        match read_adapter(&path) {
            Ok(adapter) => {
                if let Some((other, _)) = found.iter().find(|(_, other)| other.name == adapter.name) {
                    let message = format!("name is \"{}\", as in {}", adapter.name, other.display());
                    let mistakes = vec![Mistake { at: start, message }];
                    errors.push(ConfigError::Mistakes { file: path.clone(), mistakes });
                }
                found.push((path, adapter));
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(ConfigError::Several(errors)) }
}

/// Keys of `[adapters.NAME]` that are not settings of the adapter.
const OWN: [&str; 2] = ["schema", "allow_actions"];

/// A text of one line with at most 500 characters.
fn line(reader: &mut ConfigReader<'_>, key: &str, value: TomlValue<'_, '_>) -> Option<Text> {
    let found = reader.string(key, value, "a text in quotes")?;
    if crate::text::one_line(&found) != found || found.chars().count() > 500 {
        reader.expected(key, value, "one line of at most 500 characters, without control characters");
        return None;
    }
    Some(found.into())
}

/// Whether this is a valid key: lowercase letters, digits and `_`.
fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !name.is_empty() && name.len() <= 40 && name.chars().all(letter)
}

/// `seconds` is set if the value is a duration.
fn setting(name: &str, value: &str) -> Setting {
    let seconds = parse_duration(value).map(|duration| duration.as_secs_f64());
    Setting { name: name.into(), value: value.into(), seconds }
}

#[cfg(test)]
mod tests;
