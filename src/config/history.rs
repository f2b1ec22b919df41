use toml::de::DeTable;

use super::reader::{Reader, Value, get};
use crate::feed::history::Limits;
use crate::text::parse_duration;

/// To keep more than a day, record to a file.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// Upper limit of the memory, in megabytes.
const MAX_MEGABYTES: usize = 4096;

pub(super) fn history(reader: &mut Reader<'_>, value: Value<'_, '_>) -> Limits {
    let mut limits = Limits::default();
    let Some(table) = reader.table("history", value) else { return limits };
    reader.only(table, " in [history]", &["length", "memory"]);
    read(
        reader,
        table,
        "length",
        "a duration up to \"24h\", such as \"15m\"; \"0s\" keeps nothing",
        |text| {
            limits.length = parse_duration(text).filter(|length| length.as_secs() <= MAX_SECONDS)?;
            Some(())
        },
    );
    read(
        reader,
        table,
        "memory",
        "an amount up to \"4GB\", such as \"64MB\"; \"0MB\" keeps nothing",
        |text| {
            limits.memory = bytes(text)?;
            Some(())
        },
    );
    limits
}

fn read(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    name: &str,
    expected: &str,
    mut set: impl FnMut(&str) -> Option<()>,
) {
    let Some(value) = get(table, name) else { return };
    if value.get_ref().as_str().and_then(&mut set).is_none() {
        reader.expected(name, value, expected);
    }
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
