//! The definition of the command line, with help that shows each command the options it uses.

use clap::{Command, CommandFactory};

use super::args::Cli;

/// Options that are about a server to connect to.
const CONNECTING: [&str; 7] =
    ["host", "port", "username", "dbname", "no_password", "password", "trust_owner"];

/// Options that are about Redis: only what shows its locks uses them.
const REDIS: [&str; 2] = ["redis", "redis_pattern"];

/// Commands that connect to nothing.
const LOCAL: [&str; 10] =
    ["completions", "man", "config", "print", "path", "demo-worker", "help", "replay", "cut", "report"];

/// The whole definition. An option before a command counts for every command; the help of a command lists
/// only the options it uses.
pub(super) fn command() -> Command {
    let mut command =
        Cli::command().mut_subcommand("check", |check| check.after_help(super::check::after_help()));
    // From here on every command has the options that it shares with the others.
    command.build();
    for subcommand in command.get_subcommands_mut() {
        trim(subcommand, None);
    }
    command
}

/// `parent` is the command of which it is one; none for those of the program.
fn trim(command: &mut Command, parent: Option<&str>) {
    let name = command.get_name().to_owned();
    let is_check = parent.is_none() && name == "check";
    let is_local = LOCAL.contains(&name.as_str()) || parent == Some("config");
    // A demo has servers of its own; `--url` names another.
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
