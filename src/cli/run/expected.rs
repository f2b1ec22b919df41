//! Prints the entries of blockers that were marked as expected.

use std::io::{self, Write};

use super::super::settings::Settings;
use crate::config::locate;
use crate::model::expected::ExpectedBlocker;
use crate::text::one_line;

/// Prints the entries that still apply and are not in the config. An error is ignored: the terminal may be closed.
pub(super) fn print(settings: &Settings, expected: &[ExpectedBlocker]) {
    let Some(entries) = made(&settings.thresholds.expected, expected) else { return };
    let default = || locate(None, &|name| std::env::var(name).ok()).map(|location| location.path);
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
