//! Reads the values of keys: at most a kilobyte of a string, and only small hashes. Unexpected values are left out or shown
//! as they are.

use std::time::Duration;

use locktop_locks::redis::{Command, Connection, RedisFault, Reply};

use crate::clock;
use crate::model::redis_lease::{Bytes, Expiry, KeyReading, LockValue, shown};

/// Keys requested in one message.
const BATCH: usize = 100;
/// Largest number of fields of a hash that may be a lock.
const MOST_FIELDS: i64 = 16;
/// Largest size of such a hash in bytes.
const LARGEST_HASH: i64 = 16 * 1024;

/// The value of each existing key. `PTTL` is in the same message as the value, so that the two belong together; a key
/// that changed its type in between is left out until the next round.
pub(super) async fn read(connection: &Connection, keys: &[Bytes]) -> Result<Vec<KeyReading>, RedisFault> {
    let mut readings = Vec::new();
    for keys in keys.chunks(BATCH) {
        let types: Vec<_> = keys.iter().map(|key| Command::new("TYPE").arg(key)).collect();
        let types = connection.run_all(&types).await?;
        // Refused keys (another node of the cluster has them, or the role may not read them) are treated as missing.
        let kinds: Vec<_> = keys
            .iter()
            .zip(&types)
            .filter_map(|(key, kind)| Some((key, KeyType::of(kind.as_bytes()?)?)))
            .collect();
        let questions: Vec<_> = kinds.iter().flat_map(|(key, kind)| questions(key, kind)).collect();
        let mut answers = connection.run_all(&questions).await?.into_iter();
        let mut hashes = Vec::new();
        for (key, kind) in kinds {
            let [left, first, second] =
                [answers.next(), answers.next(), answers.next()].map(|reply| reply.unwrap_or(Reply::Nil));
            let Some(expiry) = expiry(&left) else { continue };
            if kind == KeyType::Hash && is_small(&first, &second) {
                hashes.push((key, expiry));
            } else if let Some(value) = value(&kind, [&first, &second]) {
                readings.push(KeyReading { key: Bytes::clone(key), value, expiry });
            }
        }
        let contents: Vec<_> = hashes.iter().map(|(key, _)| Command::new("HGETALL").arg(key)).collect();
        let contents = connection.run_all(&contents).await?;
        let known = hashes.iter().zip(&contents).filter_map(|((key, expiry), content)| {
            Some(KeyReading { key: Bytes::clone(key), value: hash(content)?, expiry: *expiry })
        });
        readings.extend(known);
    }
    Ok(readings)
}

/// Three questions about a key, the first for its remaining time.
fn questions(key: &Bytes, kind: &KeyType) -> [Command; 3] {
    let ask = |name| Command::new(name).arg(key);
    match kind {
        KeyType::Text => {
            let value = ask("GETRANGE").number(0).number(LONGEST_VALUE as u64 - 1);
            [ask("PTTL"), value, ask("STRLEN")]
        }
        KeyType::Hash => [ask("PTTL"), ask("HLEN"), Command::new("MEMORY").arg("USAGE").arg(key)],
        KeyType::Other(_) => [ask("PTTL"), ask("TYPE"), ask("TYPE")],
    }
}

fn is_small(fields: &Reply, bytes: &Reply) -> bool {
    fields.as_number().is_some_and(|fields| fields <= MOST_FIELDS)
        && bytes.as_number().is_some_and(|bytes| bytes <= LARGEST_HASH)
}

/// Longer keys are ignored: they are not names of locks.
const LONGEST_KEY: usize = 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct ScanLimits {
    /// `COUNT` of one `SCAN` step. The server does nothing else during a step.
    pub(super) step: u64,
    pub(super) steps: u32,
    pub(super) time: Duration,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    /// Cursor that the last `SCAN` returned; `None` at the beginning.
    at: Option<Vec<u8>>,
    pub(super) complete: bool,
}

/// Continues from the cursor until the end of the key space or a limit. The keys that match the pattern can contain
/// duplicates, and keys that no longer exist.
pub(super) async fn scan(
    connection: &Connection,
    cursor: &mut Cursor,
    pattern: &[u8],
    limits: ScanLimits,
) -> Result<Vec<Bytes>, RedisFault> {
    let started = clock::monotonic();
    let mut found = Vec::new();
    for _ in 0..limits.steps {
        let from = cursor.at.take().unwrap_or_else(|| b"0".to_vec());
        let step = Command::new("SCAN").arg(&from).arg("MATCH").arg(pattern).arg("COUNT").number(limits.step);
        let reply = connection.run(&step).await?;
        let (next, keys) = split(reply).ok_or_else(|| connection.unexpected("SCAN"))?;
        found.extend(keys.into_iter().filter(|key| key.len() <= LONGEST_KEY).map(Bytes::from));
        if next == b"0" {
            cursor.complete = true;
            break;
        }
        cursor.at = Some(next);
        if started.elapsed() > limits.time {
            break;
        }
    }
    Ok(found)
}

fn split(reply: Reply) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let Reply::Several(parts) = reply else { return None };
    let mut parts = parts.into_iter();
    match (parts.next()?, parts.next()?) {
        (Reply::Bytes(next), Reply::Several(keys)) => {
            let key = |reply| match reply {
                Reply::Bytes(key) => Some(key),
                _ => None,
            };
            Some((next, keys.into_iter().filter_map(key).collect()))
        }
        _ => None,
    }
}

const LONGEST_VALUE: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyType {
    Text,
    /// A hash, as used by a lock of Redisson.
    Hash,
    /// A list, a set, a stream, a module's type.
    Other(String),
}

impl KeyType {
    /// None for a missing key.
    fn of(kind: &[u8]) -> Option<Self> {
        match kind {
            b"none" => None,
            b"string" => Some(Self::Text),
            b"hash" => Some(Self::Hash),
            other => Some(Self::Other(String::from_utf8_lossy(other).into_owned())),
        }
    }
}

/// The answer of `PTTL`: milliseconds, -1 for a key without expiry, -2 for a missing key.
fn expiry(reply: &Reply) -> Option<Expiry> {
    match reply.as_number()? {
        -1 => Some(Expiry::Never),
        left => u64::try_from(left).ok().map(|left| Expiry::After(Duration::from_millis(left))),
    }
}

fn value(kind: &KeyType, [value, length]: [&Reply; 2]) -> Option<LockValue> {
    match kind {
        KeyType::Text => {
            let bytes: Bytes = value.as_bytes()?.into();
            let whole = length.as_number()? <= i64::try_from(LONGEST_VALUE).unwrap_or(i64::MAX);
            Some(LockValue::Text { bytes, whole })
        }
        KeyType::Hash => Some(LockValue::Other("hash".into())),
        KeyType::Other(kind) => Some(LockValue::Other(kind.as_str().into())),
    }
}

/// A hash as Redisson writes it: a count per holder, and possibly the mode. A count must be above zero, so that an
/// unrelated hash is not taken for a lock.
fn hash(content: &Reply) -> Option<LockValue> {
    let Reply::Several(parts) = content else { return None };
    if parts.is_empty() {
        // Removed in between.
        return None;
    }
    let (mut holders, mut mode) = (Vec::new(), None);
    for pair in parts.chunks(2) {
        let [field, value] = pair else { return None };
        let (field, value) = (field.as_bytes()?, value.as_bytes()?);
        if field == b"mode" {
            mode = Some(Bytes::from(value));
            continue;
        }
        let count = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
        match count.filter(|count| *count > 0 && field.contains(&b':')) {
            Some(count) => holders.push((Bytes::from(field), count)),
            None => return Some(LockValue::Other(shown(b"hash"))),
        }
    }
    holders.sort();
    let known = !holders.is_empty();
    Some(if known { LockValue::Redisson { holders, mode } } else { LockValue::Other("hash".into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Reply {
        Reply::Bytes(text.as_bytes().to_vec())
    }

    fn content(parts: &[&str]) -> Reply {
        Reply::Several(parts.iter().map(|part| bytes(part)).collect())
    }

    #[test]
    fn expiry_is_a_duration_never_or_none_for_a_missing_key() {
        assert_eq!(expiry(&Reply::Number(1500)), Some(Expiry::After(Duration::from_millis(1500))));
        assert_eq!(expiry(&Reply::Number(-1)), Some(Expiry::Never));
        for other in [Reply::Number(-2), Reply::Number(i64::MIN), Reply::Nil, bytes("1"), Reply::Unexpected] {
            assert_eq!(expiry(&other), None);
        }
    }

    #[test]
    fn a_hash_with_the_form_of_redisson_is_a_lock() {
        let LockValue::Redisson { holders, mode } = hash(&content(&["u:2", "1", "u:1", "3"])).unwrap() else {
            panic!("no lock")
        };
        assert_eq!(holders, [(Bytes::from(*b"u:1"), 3), (Bytes::from(*b"u:2"), 1)]);
        assert_eq!(mode, None);
        let LockValue::Redisson { mode, .. } = hash(&content(&["mode", "read", "u:1", "1"])).unwrap() else {
            panic!("no lock")
        };
        assert_eq!(mode.as_deref(), Some(b"read".as_slice()));
        for other in [&["name", "x"][..], &["u:1", "0"], &["u:1", "x"], &["mode", "read"], &["count", "1"]] {
            assert_eq!(hash(&content(other)), Some(LockValue::Other("hash".into())), "{other:?}");
        }
        for strange in
            [content(&[]), content(&["u:1"]), Reply::Nil, Reply::Several(vec![Reply::Nil, Reply::Nil])]
        {
            assert_eq!(hash(&strange), None, "{strange:?}");
        }
    }

    #[test]
    fn a_string_that_was_cut_is_marked() {
        let value = |length| value(&KeyType::Text, [&bytes("me"), &Reply::Number(length)]);
        assert_eq!(value(2), Some(LockValue::text(b"me")));
        assert_eq!(value(1025), Some(LockValue::Text { bytes: (*b"me").into(), whole: false }));
    }
}
