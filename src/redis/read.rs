//! Reads the values of keys: at most a kilobyte of a string, and only small hashes.

use std::time::Duration;

use super::decode::{self, KeyType};
use crate::clock;
use crate::model::redis_lease::{Bytes, KeyReading};
use locktop_locks::redis::{Command, Connection, RedisFault, Reply};

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
            let Some(expiry) = decode::expiry(&left) else { continue };
            if kind == KeyType::Hash && is_small(&first, &second) {
                hashes.push((key, expiry));
            } else if let Some(value) = decode::value(&kind, [&first, &second]) {
                readings.push(KeyReading { key: Bytes::clone(key), value, expiry });
            }
        }
        let contents: Vec<_> = hashes.iter().map(|(key, _)| Command::new("HGETALL").arg(key)).collect();
        let contents = connection.run_all(&contents).await?;
        let known = hashes.iter().zip(&contents).filter_map(|((key, expiry), content)| {
            Some(KeyReading { key: Bytes::clone(key), value: decode::hash(content)?, expiry: *expiry })
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
            let value = ask("GETRANGE").number(0).number(decode::LONGEST_VALUE as u64 - 1);
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
pub(super) struct Limits {
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
    limits: Limits,
) -> Result<Vec<Bytes>, RedisFault> {
    let started = clock::monotonic();
    let mut found = Vec::new();
    for _ in 0..limits.steps {
        let from = cursor.at.take().unwrap_or_else(|| b"0".to_vec());
        let step = Command::new("SCAN").arg(&from).arg("MATCH").arg(pattern).arg("COUNT").number(limits.step);
        let reply = connection.run(&step).await?;
        let (next, keys) = split(reply).ok_or_else(|| connection.strange("SCAN"))?;
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
