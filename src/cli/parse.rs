use std::ffi::OsString;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::args::Cli;
use super::command::command;
use pg_connect::conninfo::is_connection_string;

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
