//! `[[expected]]`: blockers that are not reported as a problem.

use std::time::Duration;

use toml::de::DeTable;

use super::reader::{Reader, Value, get};
use crate::model::Text;
use crate::model::expected::ExpectedBlocker;
use crate::text::parse_duration;

const CONDITIONS: [(&str, &str); 5] = [
    ("application", "an application_name in quotes"),
    ("user", "the name of a role in quotes"),
    ("database", "the name of a database in quotes"),
    ("lock", "the name of an advisory lock or a relation in quotes"),
    ("statement", "a part of a statement in quotes"),
];

const KEYS: [&str; 7] = ["application", "user", "database", "lock", "statement", "longest_wait", "reason"];

/// Returns the valid entries.
pub(super) fn blockers(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Vec<ExpectedBlocker> {
    let mut found = Vec::new();
    for (span, table) in reader.tables("expected", value) {
        reader.only(table, " in [[expected]]", &KEYS);
        if CONDITIONS.iter().all(|(name, _)| get(table, name).is_none()) {
            reader.mistake(
                &span,
                "[[expected]] matches every blocker: name at least one of application, user, database, lock or statement",
            );
            continue;
        }
        let mut text = |name: &str, expected: &str| {
            get(table, name).and_then(|value| reader.string(name, value, expected)).map(Text::from)
        };
        let [application, user, database, lock, statement] =
            CONDITIONS.map(|(name, expected)| text(name, expected));
        let reason = text("reason", "a few words in quotes");
        let longest_wait = longest_wait(reader, table);
        found.push(ExpectedBlocker { application, user, database, lock, statement, longest_wait, reason });
    }
    found
}

fn longest_wait(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Option<Duration> {
    let value = get(table, "longest_wait")?;
    let found = value.get_ref().as_str().and_then(parse_duration).filter(|found| !found.is_zero());
    if found.is_none() {
        reader.expected("longest_wait", value, "a duration such as \"30m\" or \"2h\"");
    }
    found
}
