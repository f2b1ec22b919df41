use std::time::Duration;

use crate::clock;
use crate::model::redis_lease::Bytes;
use locktop_locks::redis::RedisFault;
use locktop_locks::redis::{Command, Connection, Reply};

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
