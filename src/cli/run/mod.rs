//! Runs the commands. Exit status: 0 success, 1 failure, 2 invalid usage.

mod adapters;
mod check;
mod configured;
mod dashboard;
#[cfg(feature = "demo")]
mod demo;
mod lock;
mod record;
mod recover;
mod replay;
mod schema;
mod snapshot;
mod worker;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use super::args::{CheckArgs, Cli, CliCommand, ConfigCommand};
use super::command::is_check;
use super::schema::{AdaptersCommand, SchemaCommand};
use super::settings::{CliSettings, SettingsError, meant};
use super::{command as output, log, password};
use crate::config::{self, Config, ConfigError};
use crate::feed::history::NotThere;
use crate::feed::once::OnceError;
use crate::feed::replay::ReplayError;
use crate::output::check::Status;
use crate::pg::SectionError;
use crate::pg::lock_of::LockOfError;
use crate::pg::poll::{OpenError, is_own};
use crate::schema::SchemaError;
use crate::text;
use locktop_base::file::FileError;
use locktop_tasks::recovery::RecoverError;
use pg_connect::connect::{Connection, connect, pin};
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnectError;
use pg_connect::message;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Standard output or the terminal cannot be used.
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Usage(String),
    #[error("ended by signal {0}")]
    Signal(u8),
    #[error("{0}")]
    Other(String),
}

impl Failure {
    fn exit_status(&self) -> u8 {
        match self {
            Self::Settings(error) => error.exit_status(),
            Self::Usage(_) => 2,
            Self::Signal(number) => 128 + number,
            Self::Io(_) | Self::Other(_) => 1,
        }
    }
}

/// Errors that are reported by their text alone; those after the semicolon in one line.
macro_rules! failures {
    ($($error:ty)+; $($long:ty)+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Other(error.to_string())
            }
        })+
        $(impl From<$long> for Failure {
            fn from(error: $long) -> Self {
                Self::Other(text::one_line(&error.to_string()).into_owned())
            }
        })+
    };
}

failures! {
    ConnectError LockOfError NotThere OnceError OpenError ReplayError SectionError crate::locks::Error serde_json::Error;
    RecoverError SchemaError
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::Io(error.into())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Settings(SettingsError::Config(error))
    }
}

pub fn run(cli: &Cli) -> ExitCode {
    match command(cli) {
        Ok(status) => ExitCode::from(status),
        // The reader of the output has closed the pipe.
        Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // The message can contain text of a server or a file.
            status_line(&failure.to_string());
            ExitCode::from(match (&cli.command, failure.exit_status()) {
                (Some(CliCommand::Check(_)), _) => Status::Unknown.code(),
                // For lock-of, status 1 means that the statement would wait.
                (Some(CliCommand::LockOf(_)), 1) => snapshot::UNKNOWN,
                (_, status) => status,
            })
        }
    }
}

pub fn explain(answer: &clap::Error, line: &[OsString]) -> ExitCode {
    let status = u8::try_from(answer.exit_code()).unwrap_or(1);
    if is_check(line) {
        return unknown(answer);
    }
    let printed = answer.print().and_then(|()| io::stdout().flush());
    // A mistyped command is parsed as a database name, and the error may be about the words after it.
    if let Some(word) = line.get(1).and_then(|word| word.to_str()).filter(|_| status != 0)
        && let Some(command) = meant(word).filter(|command| command != word)
    {
        status_line(&format!("unknown command \"{word}\": did you mean {command}?"));
    }
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && status == 0 => {
            status_line(&error.to_string());
            ExitCode::FAILURE
        }
        _ => ExitCode::from(status),
    }
}

/// Invalid usage and help are UNKNOWN: for a monitoring system, status 2 is an alarm.
fn unknown(answer: &clap::Error) -> ExitCode {
    let text = answer.render().to_string();
    let text = if answer.use_stderr() {
        format!("LOCKTOP UNKNOWN - {}", text.trim_start_matches("error: "))
    } else {
        text
    };
    let _ = write!(io::stdout(), "{text}");
    ExitCode::from(Status::Unknown.code())
}

fn command(cli: &Cli) -> Result<u8, Failure> {
    let log = cli.log_file().map_err(Failure::Usage)?;
    let log = log.map(|path| log::start(path, &env)).transpose().map_err(Failure::Usage)?;
    let done = carry_out(cli);
    match &done {
        Ok(status) => tracing::info!("ends with status {status}"),
        Err(failure) => tracing::error!("ends: {failure}"),
    }
    drop(log);
    done
}

fn carry_out(cli: &Cli) -> Result<u8, Failure> {
    match &cli.command {
        Some(CliCommand::Completions { shell }) => printed(|out| Ok(output::completions(*shell, out)?)),
        Some(CliCommand::Man { dir: None }) => printed(|out| Ok(output::man(out)?)),
        Some(CliCommand::Man { dir: Some(dir) }) => match output::man_pages(dir) {
            Ok(()) => Ok(0),
            Err(error) => Err(Failure::Other(format!("cannot write pages into {}: {error}", dir.display()))),
        },
        Some(CliCommand::Config(command)) => printed(|out| config(cli, command, out)),
        Some(CliCommand::Schema(SchemaCommand::Print { schema })) => {
            printed(|out| Ok(out.write_all(crate::schema::script(schema).as_bytes())?))
        }
        Some(CliCommand::Adapters(AdaptersCommand::Check(arguments))) if !cli.names_server() => {
            adapters::check_file(arguments)
        }
        Some(CliCommand::LockOf(arguments)) if !cli.names_server() => snapshot::offline(arguments),
        Some(CliCommand::Cut(arguments)) => replay::cut(arguments),
        Some(CliCommand::Report(arguments)) => replay::report(arguments),
        #[cfg(feature = "demo")]
        Some(CliCommand::DemoWorker { .. }) => runtime()?.block_on(demo::worker()),
        Some(CliCommand::Check(arguments)) => check(cli, arguments),
        _ => with_server(cli),
    }
}

fn printed(print: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    print(&mut out)?;
    out.flush()?;
    Ok(0)
}

fn config(cli: &Cli, command: &ConfigCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let location = || cli.config_location(&env);
    match command {
        ConfigCommand::Print => out.write_all(config::DEFAULT_TEXT.as_bytes())?,
        ConfigCommand::Path => writeln!(out, "{}", location()?.path.display())?,
        ConfigCommand::Targets { format } => {
            output::print_targets(&Config::load(&location()?)?, *format, out)?;
        }
        ConfigCommand::Check { file } => {
            let said = output::check_config(file.clone(), &location()?, &|config| {
                config::adapter::adapters(&config.adapters, config.path.as_deref())?;
                Ok(configured::taken_keys(config, &configured::keymap(config)?))
            })?;
            writeln!(out, "{said}")?;
        }
    }
    Ok(())
}

fn check(cli: &Cli, arguments: &CheckArgs) -> Result<u8, Failure> {
    let settings = match cli.settings(&env) {
        Ok(settings) => settings,
        Err(error) => return check::failed(&error.into(), arguments),
    };
    let runtime = runtime()?;
    let status = runtime.block_on(check::run(settings, arguments));
    // Do not wait for a name service that does not answer.
    runtime.shutdown_background();
    status
}

fn with_server(cli: &Cli) -> Result<u8, Failure> {
    let settings = cli.settings(&env)?;
    if let Some(path) = &settings.config.path {
        tracing::info!("config {}", path.display());
    }
    if cli.shows_password(&settings.config) {
        status_line(
            "every user of this machine can read a password on the command line: omit it to be asked for it, or use a password file",
        );
    }
    runtime()?.block_on(async {
        match &cli.command {
            #[cfg(feature = "demo")]
            Some(CliCommand::Demo(arguments)) => Box::pin(demo::run(settings, arguments)).await,
            Some(CliCommand::Snapshot(arguments)) => Box::pin(snapshot::run(settings, arguments)).await,
            Some(CliCommand::Schema(asked)) => schema::run(settings, asked).await,
            Some(CliCommand::Adapters(asked)) => Box::pin(adapters::run(settings, asked)).await,
            Some(CliCommand::Lock(arguments)) => Box::pin(lock::lock(settings, arguments)).await,
            Some(CliCommand::Lead(arguments)) => Box::pin(lock::lead(settings, arguments)).await,
            Some(CliCommand::LockOf(arguments)) => Box::pin(snapshot::lock_of(settings, arguments)).await,
            Some(CliCommand::Record(arguments)) => Box::pin(record::run(settings, arguments)).await,
            Some(CliCommand::Replay(arguments)) => Box::pin(replay::run(settings, arguments)).await,
            Some(CliCommand::Recover(arguments)) => recover::run(settings, arguments).await,
            Some(CliCommand::Worker(arguments)) => Box::pin(worker::run(settings, arguments)).await,
            _ => Box::pin(dashboard::run(settings)).await,
        }
    })
}

/// Fails unless a command may write here, and can ask before it does. `instead` is what to use without a terminal.
fn may_write(settings: &CliSettings, yes: bool, [what, writes, instead]: [&str; 3]) -> Result<(), Failure> {
    if settings.read_only {
        return Err(Failure::Usage(format!("this target is read-only, and {writes}")));
    }
    if !yes && !io::stdin().is_terminal() {
        let why = "asks before it acts, and there is no terminal to ask on";
        return Err(Failure::Usage(format!("{what} {why}: use {instead}")));
    }
    Ok(())
}

/// A connection and its parameters, including the password, for a command that needs only one. The session must not be
/// shared through a pooler.
async fn open(settings: &CliSettings) -> Result<(Connection, ConnInfo), Failure> {
    let (connection, info) = open_any(settings).await?;
    // Before any SET, which would persist in a session of another client.
    let own = Box::pin(is_own(&connection.client, &info)).await;
    own?;
    // Before any query, so that names in locktop's statements resolve to the server's own objects.
    pin(&connection.client).await.map_err(|error| Failure::Other(message(&error)))?;
    Ok((connection, info))
}

/// Like `open`, for messages that are whole transactions with all their settings: here a transaction pooler is permitted.
async fn open_any(settings: &CliSettings) -> Result<(Connection, ConnInfo), Failure> {
    let mut info = info(settings)?;
    // Both a client key and the server can require a password.
    loop {
        match connect(&info).await {
            Ok(connection) => return Ok((connection, info)),
            Err(error) => info = ask_again(settings, &info, &error)?,
        }
    }
}

/// The parameters of the connection, with the password that `-W` asks for.
fn info(settings: &CliSettings) -> Result<ConnInfo, Failure> {
    let info = settings.conninfo.clone();
    let info = info.ok_or_else(|| Failure::Other("no server to connect to".to_owned()))?;
    Ok(password::ask_first(info, settings.prompt)?)
}

/// The same with a password, if that is what was missing; otherwise fails with the error.
fn ask_again(settings: &CliSettings, info: &ConnInfo, error: &ConnectError) -> Result<ConnInfo, Failure> {
    let asked = password::ask_after(info, settings.prompt, error)?;
    asked.ok_or_else(|| Failure::Other(error.to_string()))
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Prints a text to standard output, with one line break at its end.
fn print(text: &str) -> Result<u8, Failure> {
    printed(|out| Ok(writeln!(out, "{}", text.trim_end())?))
}

/// One worker thread polls, so that a blocked terminal never delays the poll; the screens use the main thread.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// Prints a line to standard error. A closed standard error is ignored.
fn status_line(text: &str) {
    tracing::warn!("{text}");
    let _ = writeln!(io::stderr(), "locktop: {}", harmless(text));
}

/// Reports once why a command waits for the server.
fn report_waiting(said: &mut String, error: &OpenError) {
    let reason = error.to_string();
    if reason != *said {
        status_line(&format!("{reason}; waiting"));
        *said = reason;
    }
}

/// Makes each line safe for a terminal. Several config mistakes are one line each; a server message is a single line.
fn harmless(text: &str) -> String {
    text.lines().map(text::one_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(harmless("a.toml:1:2: no\na.toml:3:4: neither"), "a.toml:1:2: no\na.toml:3:4: neither");
        let said = harmless("x\u{1b}]0;title\u{7}y\u{9b}2Jz\u{7f}\u{202e}\r");
        assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said:?}");
    }
}
