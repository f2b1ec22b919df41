use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};

use super::args::{CONNECTION, Cli};
use pg_connect::conninfo::is_connection_string;

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
    let shows_redis = name == "snapshot" || name == "record" || is_check;
    let hidden = move |arg: &Arg| {
        // Only commands that show Redis locks use its options.
        let needed = if arg.get_id().as_str().starts_with("redis") { shows_redis } else { connects };
        arg.get_help_heading() == Some(CONNECTION) && !needed
    };
    let taken = std::mem::take(command);
    *command = taken.mut_args(|arg| if hidden(&arg) { arg.hide(true) } else { arg });
    for subcommand in command.get_subcommands_mut() {
        trim(subcommand, Some(&own));
    }
}

/// Parses a command line, including the program name. Help and version are also errors; an error prints itself and has its
/// exit status.
///
/// # Errors
/// The command line is invalid. The error does not repeat a possible password.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let line = super::plugin::translate(line.into_iter().collect());
    read(line).map_err(|error| match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidValue, Some(ContextValue::String(text)))
            if text.contains("--host") && error.get(ContextKind::InvalidValue).is_none_or(is_empty) =>
        {
            command().error(
                ErrorKind::InvalidValue,
                "-h is the host, as in psql, and takes one: -h HOST. Help is --help or -?",
            )
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(text)))
            if is_connection_string(text) && !text.starts_with('-') =>
        {
            command().error(
                ErrorKind::UnknownArgument,
                "more than one target: quote a key=value string that has spaces, as in 'host=db dbname=app'",
            )
        }
        (ErrorKind::TooManyValues, Some(ContextValue::String(text))) if text.contains("--password") => {
            command().error(
                ErrorKind::TooManyValues,
                "--password takes no value: it asks for the password (PGPASSWORD or ~/.pgpass provide one without a prompt)",
            )
        }
        _ => error,
    })
}

fn read(line: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(line)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn is_empty(value: &ContextValue) -> bool {
    matches!(value, ContextValue::String(text) if text.is_empty())
}
