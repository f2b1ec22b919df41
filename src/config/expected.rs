//! `[[expected]]`: blockers that are no trouble.

use super::reader::{Reader, Value, get};
use crate::model::Text;
use crate::model::expected::ExpectedBlocker;

const CONDITIONS: [(&str, &str); 4] = [
    ("application", "an application_name in quotes"),
    ("user", "the name of a role in quotes"),
    ("database", "the name of a database in quotes"),
    ("lock", "the name of an advisory lock or a relation in quotes"),
];

/// The entries that are well formed.
pub(super) fn blockers(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Vec<ExpectedBlocker> {
    let mut found = Vec::new();
    for (span, table) in reader.tables("expected", value) {
        reader.only(table, " in [[expected]]", &["application", "user", "database", "lock", "reason"]);
        if CONDITIONS.iter().all(|(name, _)| get(table, name).is_none()) {
            reader.mistake(
                &span,
                "[[expected]] matches every blocker: name at least one of application, user, database or lock",
            );
            continue;
        }
        let mut text = |name: &str, expected: &str| {
            get(table, name).and_then(|value| reader.string(name, value, expected)).map(Text::from)
        };
        let [application, user, database, lock] = CONDITIONS.map(|(name, expected)| text(name, expected));
        let reason = text("reason", "a few words in quotes");
        found.push(ExpectedBlocker { application, user, database, lock, reason });
    }
    found
}
