//! `[redis]`, also below a target.

use super::Redis;
use super::reader::{Reader, Value, get};
use crate::redis::RedisUrl;

const URLS_EXPECTED: &str = "a list of URLs, urls = [\"redis://host\"]";

/// Servers and pattern. A value of `urls` may hold a password: it is never repeated.
pub(super) fn redis(reader: &mut Reader<'_>, section: &str, value: Value<'_, '_>) -> Option<Redis> {
    let Some(table) = value.get_ref().as_table() else {
        reader.mistake(
            &value.span(),
            format!("{section} is no table: expected [{section}] with {URLS_EXPECTED}"),
        );
        return None;
    };
    reader.only(table, &format!(" in [{section}]"), &["urls", "pattern"]);
    let pattern = get(table, "pattern")
        .and_then(|value| reader.string("pattern", value, "a pattern in quotes, such as \"lock:*\""));
    let Some(list) = get(table, "urls") else {
        reader.mistake(&value.span(), format!("[{section}] has no servers: expected {URLS_EXPECTED}"));
        return None;
    };
    let Some(items) = list.get_ref().as_array() else {
        reader.mistake(&list.span(), format!("urls is no list: expected {URLS_EXPECTED}"));
        return None;
    };
    let mut urls = Vec::new();
    for item in items {
        match item.get_ref().as_str().map(RedisUrl::parse) {
            Some(Ok(url)) if urls.contains(&url) => {
                reader.mistake(&item.span(), format!("{url} is named twice"));
            }
            Some(Ok(url)) => urls.push(url),
            Some(Err(error)) => reader.mistake(&item.span(), error.to_string()),
            None => reader.mistake(&item.span(), format!("a server is no text: expected {URLS_EXPECTED}")),
        }
    }
    Some(Redis { urls, pattern })
}
