mod args;
mod command;
#[cfg(feature = "demo")]
mod demo;
mod log;
mod options;
mod password;
mod recording;
mod run;
mod schema;
mod settings;
// Its cases have options of `demo`.
#[cfg(test)]
#[cfg(feature = "demo")]
mod tests;

pub use args::{
    CheckArgs, Cli, CliCommand, ConfigCommand, ConnectArgs, LockOfArgs, Screen, SnapshotArgs, SnapshotFormat,
    TargetsFormat, ViewArgs,
};
pub use command::{check_config, completions, man, parse, print_targets};
#[cfg(feature = "demo")]
pub use demo::{DemoArgs, Goal, ScenarioName};
pub use log::LogArgs;
pub use password::PasswordPrompt;
pub use run::{explain, run};
pub use schema::{
    AdaptersCheckArgs, AdaptersCommand, AdaptersListArgs, RecoverArgs, SchemaCommand, SchemaPlace, TimeLimit,
};
pub use settings::{CliSettings, Env, SettingsError};
