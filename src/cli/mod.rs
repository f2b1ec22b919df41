mod adapters;
mod args;
mod check;
mod command;
mod confirm;
mod demo;
mod lock;
mod lock_of;
mod log;
mod options;
mod output;
mod parse;
mod password;
mod plugin;
mod recording;
mod recovery;
mod run;
mod schema;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod zone;

pub use adapters::{AdaptersCheckArgs, AdaptersCommand, AdaptersListArgs};
pub use args::{
    Cli, Command, ConfigCommand, ConnectArgs, Screen, SnapshotArgs, SnapshotFormat, TargetsFormat, ThemeName,
    ViewArgs,
};
pub use check::CheckArgs;
pub use demo::{DemoArgs, Goal, NameLanguage, ScenarioName};
pub use lock_of::LockOfArgs;
pub use log::LogArgs;
pub use output::{check_config, completions, man, print_config, print_path, print_targets};
pub use parse::parse;
pub use password::Prompt;
pub use recovery::{Limit, RecoverArgs};
pub use run::{explain, run};
pub use schema::{SchemaCommand, SchemaPlace};
pub use settings::{Context, Settings, SettingsError};
