use toml::Spanned;
use toml::de::DeValue;

use super::Redis;
use super::reader::{Reader, Value, get};
use crate::redis::{RedisSets, RedisUrl};

const URLS_EXPECTED: &str = "a list of URLs, urls = [\"redis://host\"]";

type Item<'i> = Spanned<DeValue<'i>>;

/// Reads servers and patterns. A value of `urls` can contain a password and is never repeated.
pub(super) fn redis(reader: &mut Reader<'_>, section: &str, value: Value<'_, '_>) -> Option<Redis> {
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
    let is_list = |item: &&Item<'_>| item.get_ref().as_array().is_some();
    let alone: Vec<_> = items.iter().filter(|item| !is_list(item)).collect();
    add(reader, &mut sets, &alone);
    for list in items.iter().filter_map(|item| item.get_ref().as_array()) {
        add(reader, &mut sets, &list.iter().collect::<Vec<_>>());
    }
    Some(Redis { sets, patterns })
}

fn pattern(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Option<String> {
    reader.string("pattern", value, "a pattern in quotes, such as \"lock:*\", or a list of them")
}

/// Adds a set. A repeated server is a mistake and is left out.
fn add(reader: &mut Reader<'_>, sets: &mut RedisSets, items: &[&Item<'_>]) {
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
