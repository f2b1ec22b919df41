//! Reading the command line.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::args::Cli;
use crate::pg::conninfo::is_connection_string;

/// Reads a command line, the program's name first. An error prints itself and knows its exit status; help and version
/// are such errors too.
///
/// # Errors
/// When it cannot be understood. What may be a password is not repeated.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line).map_err(|error| match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(text)))
            if is_connection_string(text) && !text.starts_with('-') =>
        {
            Cli::command().error(
                ErrorKind::UnknownArgument,
                "more than one target: a key=value string with spaces in it is written in quotes, as in 'host=db dbname=app'",
            )
        }
        (ErrorKind::TooManyValues, Some(ContextValue::String(text))) if text.contains("--password") => {
            Cli::command().error(
                ErrorKind::TooManyValues,
                "--password takes no value: it asks for the password (PGPASSWORD or ~/.pgpass give one without asking)",
            )
        }
        _ => error,
    })
}
