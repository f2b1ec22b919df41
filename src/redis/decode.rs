//! Decodes answers into the model. Unexpected values are left out or shown as they are; nothing here fails.

use std::time::Duration;

use crate::model::redis_lease::{Bytes, Expiry, LockValue, shown};
use locktop_locks::redis::Reply;

pub(super) const LONGEST_VALUE: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyType {
    Text,
    /// A hash, as used by a lock of Redisson.
    Hash,
    /// A list, a set, a stream, a module's type.
    Other(String),
}

impl KeyType {
    /// None for a missing key.
    pub(super) fn of(kind: &[u8]) -> Option<Self> {
        match kind {
            b"none" => None,
            b"string" => Some(Self::Text),
            b"hash" => Some(Self::Hash),
            other => Some(Self::Other(String::from_utf8_lossy(other).into_owned())),
        }
    }
}

/// The answer of `PTTL`: milliseconds, -1 for a key without expiry, -2 for a missing key.
pub(super) fn expiry(reply: &Reply) -> Option<Expiry> {
    match reply.as_number()? {
        -1 => Some(Expiry::Never),
        left => u64::try_from(left).ok().map(|left| Expiry::After(Duration::from_millis(left))),
    }
}

pub(super) fn value(kind: &KeyType, [value, length]: [&Reply; 2]) -> Option<LockValue> {
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
pub(super) fn hash(content: &Reply) -> Option<LockValue> {
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
    fn time_left_is_milliseconds_or_never_or_the_key_is_gone() {
        assert_eq!(expiry(&Reply::Number(1500)), Some(Expiry::After(Duration::from_millis(1500))));
        assert_eq!(expiry(&Reply::Number(-1)), Some(Expiry::Never));
        for gone in [Reply::Number(-2), Reply::Number(i64::MIN), Reply::Nil, bytes("1"), Reply::Strange] {
            assert_eq!(expiry(&gone), None);
        }
    }

    #[test]
    fn a_hash_is_a_lock_when_it_looks_like_redissons() {
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
