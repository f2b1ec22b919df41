//! Ends a lock of another holder on request of the operator: only exactly what was shown is deleted.

use std::time::Duration;

use futures_util::future::join_all;

use super::{Command, Connection, RedisFault, RedisUrl, Reply, Unlock};
use crate::model::redis_lease::{LockValue, RedisLease};

/// Deletes a string that has this value: 1; 0 if the key does not exist, -1 if it has changed.
const STRING: &str = "\
    local kind = redis.call('TYPE', KEYS[1]).ok \
    if kind == 'none' then return 0 end \
    if kind ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end \
    return redis.call('DEL', KEYS[1])";

/// The same for a hash that has exactly these fields and values.
const HASH: &str = "\
    local kind = redis.call('TYPE', KEYS[1]).ok \
    if kind == 'none' then return 0 end \
    if kind ~= 'hash' or redis.call('HLEN', KEYS[1]) * 2 ~= #ARGV then return -1 end \
    for at = 1, #ARGV, 2 do \
        if redis.call('HGET', KEYS[1], ARGV[at]) ~= ARGV[at + 1] then return -1 end \
    end \
    return redis.call('DEL', KEYS[1])";

/// Deletes a lock on every server, if it is still what the row shows there. The servers are those of its set
/// ([`RedisLease::members`]), in the same order. For a server that did not have it, or did not answer, the holder's value
/// is compared. Each server has `timeout` to answer; one that does not answer may still have deleted it.
pub async fn force_unlock(lease: &RedisLease, servers: &[RedisUrl], timeout: Duration) -> Vec<Unlock> {
    let unlock = |(at, server): (usize, &RedisUrl)| {
        let place = lease.places.iter().find(|place| place.server == at);
        let value = place.map_or(&lease.holder, |place| &place.value).clone();
        let server = server.clone();
        async move {
            let Some(command) = compare_and_delete(&lease.key, &value) else { return Unlock::NotComparable };
            match tokio::time::timeout(timeout, unlock(&server, &command, timeout)).await {
                Ok(Ok(unlock)) => unlock,
                Ok(Err(fault)) => Unlock::Failed(fault),
                Err(_) => Unlock::Failed(RedisFault::Silent { server, timeout }),
            }
        }
    };
    join_all(servers.iter().enumerate().map(unlock)).await
}

async fn unlock(server: &RedisUrl, command: &Command, timeout: Duration) -> Result<Unlock, RedisFault> {
    let connection = Connection::open(server, timeout).await?;
    match connection.run(command).await? {
        Reply::Number(1) => Ok(Unlock::Freed),
        Reply::Number(0) => Ok(Unlock::Gone),
        Reply::Number(-1) => Ok(Unlock::Changed),
        _ => Err(connection.unexpected("EVAL")),
    }
}

fn compare_and_delete(key: &[u8], value: &LockValue) -> Option<Command> {
    let script = |script| Command::new("EVAL").arg(script).number(1).arg(key);
    match value {
        LockValue::Text { bytes, whole: true } => Some(script(STRING).arg(bytes)),
        LockValue::Redisson { holders, mode } => {
            let fields = holders
                .iter()
                .fold(script(HASH), |command, (field, count)| command.arg(field).arg(count.to_string()));
            Some(mode.iter().fold(fields, |command, mode| command.arg("mode").arg(mode)))
        }
        LockValue::Text { whole: false, .. } | LockValue::Other(_) => None,
    }
}
