//! Redis: reads the locks that are stored there. Nothing here is part of a poll of PostgreSQL: a slow, failed or
//! misconfigured Redis delays only its own rows.

mod options;
mod sets;

#[cfg(feature = "redis")]
mod decode;
#[cfg(feature = "redis")]
mod force;
#[cfg(feature = "redis")]
mod read;
#[cfg(feature = "redis")]
mod scan;
#[cfg(feature = "redis")]
mod watch;

#[cfg(not(feature = "redis"))]
mod without;

#[cfg(feature = "redis")]
pub use force::force_unlock;
#[cfg(feature = "redis")]
pub use locktop_locks::redis::{Command, Connection, RedisFault, RedisUrl, RedisUrlError, Reply, TlsTrouble};
pub use options::{RedisOptions, RedisState, Unlock};
pub use sets::{RedisSets, parse_list};
#[cfg(feature = "redis")]
pub use watch::{read_once, watch};
#[cfg(not(feature = "redis"))]
pub use without::{RedisFault, RedisUrl, RedisUrlError, force_unlock, read_once, watch};
