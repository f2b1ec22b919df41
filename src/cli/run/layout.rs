//! The saved layout of the dashboard, and the entries of expected blockers that it prints at its end. All errors are
//! ignored: both are only a convenience.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::super::settings::Settings;
use super::env;
use crate::action::audit::directory;
use crate::app::App;
use crate::app::layout::Layout;
use crate::app::screens::Screen;
use crate::config::locate;
use crate::model::expected::ExpectedBlocker;
use crate::text::one_line;
use locktop_base::file::{Folder, How};

/// A longer file was not written by locktop.
const LONGEST: u64 = 64 * 1024;

const FILE: &str = "layout.toml";

fn place() -> Option<PathBuf> {
    directory(&env)
}

/// Restores the saved layout, except the screen if one is named.
pub(super) fn restore(app: &mut App, named: Option<Screen>) {
    let Some(place) = place().filter(|place| place.is_dir()) else { return };
    let Ok(file) = Folder::open(&place).and_then(|folder| folder.file(FILE, How::Existing)) else { return };
    let mut text = String::new();
    if file.take(LONGEST + 1).read_to_string(&mut text).is_ok_and(|length| length as u64 <= LONGEST) {
        app.lay_out(Layout::parse(&text), named);
    }
}

/// Replaces the whole file. If two dashboards end at the same time, one layout is kept.
pub(super) fn keep(layout: &Layout) {
    let Some(place) = place() else { return };
    let Ok(folder) = Folder::open(&place) else { return };
    let _ = folder.replace(FILE, layout.text().as_bytes());
}

/// Prints the entries that still apply and are not in the config. An error is ignored: the terminal may be closed.
pub(super) fn print_expected(settings: &Settings, expected: &[ExpectedBlocker]) {
    let Some(entries) = made(&settings.config.thresholds.expected, expected) else { return };
    let default = || locate(None, &env).map(|location| location.path);
    let file = settings.config.path.clone().or_else(default).unwrap_or_else(|| "config.toml".into());
    let file = one_line(&file.display().to_string()).into_owned();
    let mut out = io::stdout().lock();
    let _ = write!(out, "# add to {file}:\n{entries}").and_then(|()| out.flush());
}

fn made(config: &[ExpectedBlocker], expected: &[ExpectedBlocker]) -> Option<String> {
    let made = expected.iter().filter(|entry| !config.contains(entry));
    let entries: Vec<String> = made.map(ExpectedBlocker::toml).collect();
    (!entries.is_empty()).then(|| entries.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Checks, Config};

    #[test]
    fn only_new_entries_are_printed_and_the_config_reads_them() {
        let [old, first, second] = ["old", "b \"\u{1b}", "a"]
            .map(|name| ExpectedBlocker { user: Some(name.into()), ..ExpectedBlocker::default() });
        let config = [old.clone()];
        assert_eq!(made(&config, &config), None);
        assert_eq!(made(&config, &[]), None);
        let text = made(&config, &[old, first.clone(), second.clone()]).unwrap();
        let read = Config::parse(&text, Path::new(""), &Checks::default()).unwrap();
        assert_eq!(read.thresholds.expected, [first, second]);
    }
}
