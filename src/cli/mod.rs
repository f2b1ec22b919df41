mod args;
mod check;
mod command;
mod demo;
mod log;
mod options;
mod output;
mod password;
mod recording;
mod run;
mod schema;
mod settings;
#[cfg(test)]
mod tests;
mod zone;

pub use args::{
    Cli, Command, ConfigCommand, ConnectArgs, LockOfArgs, Screen, SnapshotArgs, SnapshotFormat,
    TargetsFormat, ViewArgs,
};
pub use check::CheckArgs;
pub use command::parse;
pub use demo::{DemoArgs, Goal, NameLanguage, ScenarioName};
pub use log::LogArgs;
pub use output::{check_config, completions, man, print_targets};
pub use password::Prompt;
pub use run::{explain, run};
pub use schema::{
    AdaptersCheckArgs, AdaptersCommand, AdaptersListArgs, Limit, RecoverArgs, SchemaCommand, SchemaPlace,
};
pub use settings::{Env, Settings, SettingsError};
