//! `[[expected]]`, blockers that are not reported as a problem; `[history]`; and `[redis]`.

use toml::Spanned;
use toml::de::DeValue;

use super::Redis;
use super::reader::{ConfigReader, TomlValue, duration, get, text};
use crate::feed::history::HistoryLimits;
use crate::model::Text;
use crate::model::thresholds::ExpectedBlocker;
use crate::redis::{RedisSets, RedisUrl};

const CONDITIONS: [(&str, &str); 5] = [
    ("application", "an application_name in quotes"),
    ("user", "the name of a role in quotes"),
    ("database", "the name of a database in quotes"),
    ("lock", "the name of an advisory lock or a relation in quotes"),
    ("statement", "a part of a statement in quotes"),
];

const KEYS: [&str; 7] = ["application", "user", "database", "lock", "statement", "longest_wait", "reason"];

/// Returns the valid entries.
pub(super) fn blockers(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Vec<ExpectedBlocker> {
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
        let mut text = |name: &str, expected: &str| reader.key(table, name, expected, text).map(Text::from);
        let [application, user, database, lock, statement] =
            CONDITIONS.map(|(name, expected)| text(name, expected));
        let reason = text("reason", "a few words in quotes");
        let longest = |value: &DeValue<'_>| duration(value).filter(|found| !found.is_zero());
        let longest_wait = reader.key(table, "longest_wait", "a duration such as \"30m\" or \"2h\"", longest);
        found.push(ExpectedBlocker { application, user, database, lock, statement, longest_wait, reason });
    }
    found
}

/// To keep more than a day, record to a file.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// Upper limit of the memory, in megabytes.
const MAX_MEGABYTES: usize = 4096;

pub(super) fn history(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> HistoryLimits {
    let mut limits = HistoryLimits::default();
    let Some(table) = reader.section("history", value, &["length", "memory"]) else { return limits };
    let expected = "a duration up to \"24h\", such as \"15m\"; \"0s\" keeps nothing";
    let length = |value: &DeValue<'_>| duration(value).filter(|length| length.as_secs() <= MAX_SECONDS);
    limits.length = reader.key(table, "length", expected, length).unwrap_or(limits.length);
    let expected = "an amount up to \"4GB\", such as \"64MB\"; \"0MB\" keeps nothing";
    let memory = |value: &DeValue<'_>| value.as_str().and_then(bytes);
    limits.memory = reader.key(table, "memory", expected, memory).unwrap_or(limits.memory);
    limits
}

/// The bytes of a size such as `64MB` or `1GB`. `None` if invalid or above the limit.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, factor) = match (text.strip_suffix("MB"), text.strip_suffix("GB")) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 1024),
        _ => return None,
    };
    let megabytes = number.trim_end().parse::<usize>().ok()?.checked_mul(factor)?;
    (megabytes <= MAX_MEGABYTES).then_some(megabytes << 20)
}

const URLS_EXPECTED: &str = "a list of URLs, urls = [\"redis://host\"]";

type TomlItem<'i> = Spanned<DeValue<'i>>;

/// Reads servers and patterns. A value of `urls` can contain a password and is never repeated.
pub(super) fn redis(reader: &mut ConfigReader<'_>, section: &str, value: TomlValue<'_, '_>) -> Option<Redis> {
    let Some(table) = value.get_ref().as_table() else {
        reader.mistake(
            &value.span(),
            format!("{section} is not a table: expected [{section}] with {URLS_EXPECTED}"),
        );
        return None;
    };
    reader.only(table, &format!(" in [{section}]"), &["urls", "pattern"]);
    let patterns = get(table, "pattern").map_or_else(Vec::new, |value| match value.get_ref().as_array() {
        Some(list) => list.iter().filter_map(|item| pattern(reader, item)).collect(),
        None => pattern(reader, value).into_iter().collect(),
    });
    let Some(list) = get(table, "urls") else {
        reader.mistake(&value.span(), format!("[{section}] has no servers: expected {URLS_EXPECTED}"));
        return None;
    };
    let Some(items) = list.get_ref().as_array() else {
        reader.mistake(&list.span(), format!("urls is not a list: expected {URLS_EXPECTED}"));
        return None;
    };
    let mut sets = RedisSets::default();
    // Servers given one by one form a set; each nested list is a set of its own.
    let is_list = |item: &&TomlItem<'_>| item.get_ref().as_array().is_some();
    let alone: Vec<_> = items.iter().filter(|item| !is_list(item)).collect();
    add(reader, &mut sets, &alone);
    for list in items.iter().filter_map(|item| item.get_ref().as_array()) {
        add(reader, &mut sets, &list.iter().collect::<Vec<_>>());
    }
    Some(Redis { sets, patterns })
}

fn pattern(reader: &mut ConfigReader<'_>, value: TomlValue<'_, '_>) -> Option<String> {
    reader.string("pattern", value, "a pattern in quotes, such as \"lock:*\", or a list of them")
}

/// Adds a set. A repeated server is a mistake and is left out.
fn add(reader: &mut ConfigReader<'_>, sets: &mut RedisSets, items: &[&TomlItem<'_>]) {
    let mut set: Vec<RedisUrl> = Vec::new();
    for item in items {
        match item.get_ref().as_str().map(RedisUrl::parse) {
            Some(Ok(url)) if set.contains(&url) || sets.servers().any(|other| *other == url) => {
                reader.mistake(&item.span(), format!("{url} is named twice"));
            }
            Some(Ok(url)) => set.push(url),
            Some(Err(error)) => reader.mistake(&item.span(), error.to_string()),
            None => {
                reader.mistake(&item.span(), format!("a server is not a string: expected {URLS_EXPECTED}"));
            }
        }
    }
    // Repeated servers are already removed.
    let _ = sets.add(set);
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn amounts_have_a_unit() {
        assert_eq!(bytes("64MB"), Some(64 << 20));
        assert_eq!(bytes(" 1 GB"), Some(1 << 30));
        assert_eq!(bytes("0MB"), Some(0));
        for text in ["", "64", "MB", "-1MB", "5GB", "99999999999999999999MB", "1.5GB", "64mb"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
