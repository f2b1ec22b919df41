//! Values that the parts of an adapter's file share.

use super::super::reader::{Reader, Value};
use crate::model::Text;
use crate::model::adapter::Setting;
use crate::text::parse_duration;

/// Keys of `[adapters.NAME]` that are no settings of the system.
pub(super) const OWN: [&str; 2] = ["schema", "allow_actions"];

/// A text of one line and no more than 500 characters, or a note that it is none.
pub(super) fn line(reader: &mut Reader<'_>, key: &str, value: Value<'_, '_>) -> Option<Text> {
    let found = reader.string(key, value, "a text in quotes")?;
    if crate::text::one_line(&found) != found || found.chars().count() > 500 {
        reader.expected(key, value, "one line of at most 500 characters, without control characters");
        return None;
    }
    Some(found.into())
}

/// Whether this is a name of ours.
pub(super) fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !name.is_empty() && name.len() <= 40 && name.chars().all(letter)
}

/// A setting with this value, and its seconds where it is a duration.
pub(super) fn setting(name: &str, value: &str) -> Setting {
    let seconds = parse_duration(value).map(|duration| duration.as_secs_f64());
    Setting { name: name.into(), value: value.into(), seconds }
}
