//! Looking through the key space, a step at a time.

use std::time::Duration;

use crate::clock;
use crate::model::redis_lease::Bytes;
use locktop_locks::redis::RedisFault;
use locktop_locks::redis::{Command, Connection, Reply};

/// Names of keys longer than this are no names of locks.
const LONGEST_KEY: usize = 1024;

/// How far one look goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Keys that the server looks at in one step (`COUNT`): it does nothing else meanwhile.
    pub(super) step: u64,
    /// Steps that one look takes at most.
    pub(super) steps: u32,
    /// Time for all steps of one look together.
    pub(super) time: Duration,
}

/// Where a look through the key space has got to.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    /// What `SCAN` said last; none at the beginning.
    at: Option<Vec<u8>>,
    /// Whether everything has been seen once.
    pub(super) complete: bool,
}

/// Goes on from the cursor: until the end of the key space, or as far as the limits let it. Returns the keys that fit the
/// pattern; some may be there twice, and some may be gone by now.
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

/// The next cursor, and the keys.
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
