use super::super::reader::{Reader, Value};
use crate::model::Text;
use crate::model::adapter::Setting;
use crate::text::parse_duration;

/// Keys of `[adapters.NAME]` that are not settings of the adapter.
pub(super) const OWN: [&str; 2] = ["schema", "allow_actions"];

/// A text of one line with at most 500 characters.
pub(super) fn line(reader: &mut Reader<'_>, key: &str, value: Value<'_, '_>) -> Option<Text> {
    let found = reader.string(key, value, "a text in quotes")?;
    if crate::text::one_line(&found) != found || found.chars().count() > 500 {
        reader.expected(key, value, "one line of at most 500 characters, without control characters");
        return None;
    }
    Some(found.into())
}

/// Whether this is a valid key: lowercase letters, digits and `_`.
pub(super) fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !name.is_empty() && name.len() <= 40 && name.chars().all(letter)
}

/// `seconds` is set if the value is a duration.
pub(super) fn setting(name: &str, value: &str) -> Setting {
    let seconds = parse_duration(value).map(|duration| duration.as_secs_f64());
    Setting { name: name.into(), value: value.into(), seconds }
}
