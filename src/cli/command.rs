use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Subcommand as _};
use pg_connect::conninfo::is_connection_string;

use super::args::{CONNECTION, Cli, CliCommand, TargetsFormat};
use crate::config::{Config, ConfigError, Location};
use crate::text;

const LOCAL: [&str; 10] =
    ["completions", "man", "config", "print", "path", "demo-worker", "help", "replay", "cut", "report"];

/// The complete command line. Options before a command apply to every command; the help of a command lists only the options
/// that it uses.
pub(super) fn command() -> clap::Command {
    let mut command =
        Cli::command().mut_subcommand("check", |check| check.after_help(super::args::check_help()));
    // After this, every command has its copy of the global options.
    command.build();
    for subcommand in command.get_subcommands_mut() {
        trim(subcommand, None);
    }
    command
}

/// `parent` is the parent command, `None` at the top level.
fn trim(command: &mut clap::Command, parent: Option<&str>) {
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
/// exit status. It does not repeat a possible password.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let line = translate(line.into_iter().collect());
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

/// The program name that enables the conventions of a monitoring plugin.
const PLUGIN: &str = "check_locktop";

/// Whether the command line is a check. Invalid usage of a check is UNKNOWN, not CRITICAL.
pub(super) fn is_check(line: &[OsString]) -> bool {
    is_plugin(line) || position(line).is_some()
}

fn is_plugin(line: &[OsString]) -> bool {
    line.first().and_then(|program| Path::new(program).file_name()).is_some_and(|name| name == PLUGIN)
}

/// The index of `check`, if it is the first command on the line.
fn position(line: &[OsString]) -> Option<usize> {
    let words = line.windows(2).enumerate();
    let mut found = words.filter_map(|(at, pair)| match pair {
        [before, word] => {
            let word = word.to_str().filter(|word| CliCommand::has_subcommand(word))?;
            (!before.to_str().is_some_and(has_value)).then_some((at + 1, word))
        }
        _ => None,
    });
    found.next().filter(|(_, word)| *word == "check").map(|(at, _)| at)
}

/// Whether an option before a command has a value: then the next word is not a command.
fn has_value(option: &str) -> bool {
    let is_it = |arg: &Arg| {
        arg.get_short().is_some_and(|short| option == format!("-{short}"))
            || arg.get_long().is_some_and(|long| option == format!("--{long}"))
    };
    let known = |arg: &Arg| arg.is_global_set() && arg.get_action().takes_values() && is_it(arg);
    option == "-t" || Cli::command().get_arguments().any(known)
}

/// Translates plugin options: in a check, `-w` and `-c` are thresholds; under the plugin name, `-H` is the host.
pub(super) fn translate(line: Vec<OsString>) -> Vec<OsString> {
    let by_name = is_plugin(&line);
    let Some(from) = (if by_name { Some(0) } else { position(&line) }) else { return line };
    let mut out: Vec<OsString> = Vec::with_capacity(line.len() + 1);
    for (at, word) in line.iter().enumerate() {
        // A check never asks for a password, so psql's -w has no meaning here.
        let is_limit =
            || line.get(at + 1).and_then(|next| next.to_str()).is_some_and(|next| !next.starts_with('-'));
        out.push(match word.to_str() {
            Some("-w") if at > from && is_limit() => "--warning".into(),
            Some("-c") if at > from && is_limit() => "--critical".into(),
            Some("-H" | "--hostname") if by_name => "--host".into(),
            _ => word.clone(),
        });
        if by_name && at == 0 {
            out.push("check".into());
        }
    }
    out
}

pub fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generator panics if the writer fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "locktop", &mut script);
    out.write_all(&script)
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set())
}

pub fn man(out: &mut dyn Write) -> io::Result<()> {
    let command = command();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in visible(&command) {
        let mut part = Vec::new();
        // The page of the program has the global options.
        let hidden = |arg: clap::Arg| if arg.is_global_set() { arg.hide(true) } else { arg };
        let own = clap_mangen::Man::new(subcommand.clone().mut_args(hidden));
        own.render_synopsis_section(&mut part)?;
        own.render_description_section(&mut part)?;
        own.render_options_section(&mut part)?;
        // Sections of a subcommand become subsections in the program's page.
        let part = String::from_utf8_lossy(&part).replace(".SH ", ".SS ");
        write!(page, ".SH LOCKTOP {}\n{part}", subcommand.get_name().to_uppercase())?;
    }
    out.write_all(&page)
}

/// Writes a page for the program and one for each command, such as `locktop-check.1`, into a directory.
pub(super) fn man_pages(dir: &Path) -> io::Result<()> {
    let mut commands = vec![command()];
    while let Some(command) = commands.pop() {
        commands.extend(visible(&command).cloned());
        clap_mangen::Man::new(command).generate_to(dir)?;
    }
    Ok(())
}

/// Writes only the names of the targets: the connection strings can contain passwords.
pub fn print_targets(config: &Config, format: TargetsFormat, out: &mut dyn Write) -> io::Result<()> {
    let names = config.targets.keys();
    match format {
        TargetsFormat::Lines => {
            for name in names {
                writeln!(out, "{}", text::one_line(name))?;
            }
            Ok(())
        }
        TargetsFormat::Zabbix => {
            let found: Vec<_> = names.map(|name| serde_json::json!({ "{#TARGET}": name })).collect();
            writeln!(out, "{}", serde_json::Value::from(found))
        }
    }
}

/// Checks a config file and returns the lines to print if it has no mistakes. `whole` finds mistakes that no single section
/// shows, and valid settings that are probably not intended.
pub fn check_config(
    file: Option<PathBuf>,
    location: &Location,
    whole: &dyn Fn(&Config) -> Result<Vec<String>, ConfigError>,
) -> Result<String, ConfigError> {
    let location = file.map_or_else(|| location.clone(), |path| Location { path, named: true });
    let config = Config::load(&location)?;
    let notes = whole(&config)?;
    let path = location.path.display();
    let said = match config.path {
        Some(_) => format!("{path}: no mistakes"),
        None => format!("{path}: does not exist, the defaults apply"),
    };
    Ok([vec![said], notes].concat().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_plugins_options_are_understood() {
        for (given, meant, is) in [
            (
                "locktop check -w waiting=5 -c worst_root=~:10",
                "locktop check --warning waiting=5 --critical worst_root=~:10",
                true,
            ),
            ("locktop -w check prod", "locktop -w check prod", true),
            ("locktop check -w prod", "locktop check --warning prod", true),
            ("locktop check -w --looks 2", "locktop check -w --looks 2", true),
            ("locktop man check", "locktop man check", false),
            ("locktop schema check", "locktop schema check", false),
            ("locktop -d check", "locktop -d check", false),
            ("locktop config check", "locktop config check", false),
            ("locktop -w a=b", "locktop -w a=b", false),
            ("locktop snapshot", "locktop snapshot", false),
            (
                "/usr/lib/nagios/plugins/check_locktop -H db1 -w waiting=5 -t 10",
                "/usr/lib/nagios/plugins/check_locktop check --host db1 --warning waiting=5 -t 10",
                true,
            ),
        ] {
            assert_eq!(is_check(&line(given)), is, "{given}");
            assert_eq!(translate(line(given)), line(meant), "{given}");
        }
    }

    #[test]
    fn every_command_has_a_page_with_all_its_options() {
        let dir = tempfile::tempdir().unwrap();
        man_pages(dir.path()).unwrap();
        let mut commands = vec![command()];
        while let Some(command) = commands.pop() {
            let name = command.get_display_name().unwrap_or("locktop").to_owned();
            let page = std::fs::read_to_string(dir.path().join(format!("{name}.1"))).unwrap();
            for option in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                assert!(page.contains(&format!("\\-\\-{}", long.replace('-', "\\-"))), "{name}: --{long}");
            }
            commands.extend(visible(&command).cloned());
        }
        assert!(dir.path().join("locktop-schema-install.1").exists());
        assert!(!dir.path().join("locktop-demo-worker.1").exists());
    }
}
