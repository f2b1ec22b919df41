//! Redis: reading the locks that are kept there. Nothing here is part of a poll of PostgreSQL: a Redis
//! that is slow, dead or full of strange things delays nothing but its own rows.

mod decode;
mod force;
mod read;
mod scan;
mod sets;
mod watch;

pub use force::{Unlock, force_unlock};
pub use locktop_locks::redis::{Command, Connection, RedisFault, RedisUrl, RedisUrlError, Reply, TlsTrouble};
pub use sets::{RedisSets, parse_list};
pub use watch::{RedisOptions, RedisState, read_once, watch};
