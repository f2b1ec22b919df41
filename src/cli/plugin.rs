//! Command-line conventions of monitoring plugins for `locktop check`.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, CommandFactory, Subcommand as _};

use super::args::{Cli, Command};

/// The program name that enables the conventions of a monitoring plugin.
const PLUGIN: &str = "check_locktop";

/// Whether the command line is a check. Invalid usage of a check is UNKNOWN, not CRITICAL.
pub(super) fn is_check(line: &[OsString]) -> bool {
    is_plugin(line) || command(line).is_some()
}

fn is_plugin(line: &[OsString]) -> bool {
    line.first().and_then(|program| Path::new(program).file_name()).is_some_and(|name| name == PLUGIN)
}

/// The index of `check`, if it is the first command on the line.
fn command(line: &[OsString]) -> Option<usize> {
    let words = line.windows(2).enumerate();
    let mut found = words.filter_map(|(at, pair)| match pair {
        [before, word] => {
            let word = word.to_str().filter(|word| Command::has_subcommand(word))?;
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
    let Some(from) = (if by_name { Some(0) } else { command(&line) }) else { return line };
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
}
