use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;

use super::args::TargetsFormat;
use super::command::command;
use crate::config::{Config, ConfigError, Location};
use crate::text;

pub fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> io::Result<()> {
    // The generator panics if the writer fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "locktop", &mut script);
    out.write_all(&script)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
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
