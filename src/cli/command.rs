use clap::{Command, CommandFactory};

use super::args::Cli;

const CONNECTING: [&str; 7] =
    ["host", "port", "username", "dbname", "no_password", "password", "trust_owner"];

/// Redis options; only commands that show Redis locks use them.
const REDIS: [&str; 2] = ["redis", "redis_pattern"];

const LOCAL: [&str; 10] =
    ["completions", "man", "config", "print", "path", "demo-worker", "help", "replay", "cut", "report"];

/// The complete command line. Options before a command apply to every command; the help of a command lists only the options
/// that it uses.
pub(super) fn command() -> Command {
    let mut command =
        Cli::command().mut_subcommand("check", |check| check.after_help(super::check::after_help()));
    // After this, every command has its copy of the global options.
    command.build();
    for subcommand in command.get_subcommands_mut() {
        trim(subcommand, None);
    }
    command
}

/// `parent` is the parent command, `None` at the top level.
fn trim(command: &mut Command, parent: Option<&str>) {
    let name = command.get_name().to_owned();
    let is_check = parent.is_none() && name == "check";
    let is_local = LOCAL.contains(&name.as_str()) || parent == Some("config");
    // A demo has its own server; `--url` names another.
    let connects = !is_local && name != "demo";
    let own = name.clone();
    let hidden = move |id: &str| {
        (!connects && CONNECTING.contains(&id))
            || (name != "snapshot" && name != "record" && !is_check && REDIS.contains(&id))
    };
    let taken = std::mem::take(command);
    *command = taken.mut_args(|arg| if hidden(arg.get_id().as_str()) { arg.hide(true) } else { arg });
    for subcommand in command.get_subcommands_mut() {
        trim(subcommand, Some(&own));
    }
}
