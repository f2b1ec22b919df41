//! Redis: connecting, and reading the locks that are kept there. Nothing here is part of a poll of PostgreSQL: a Redis
//! that is slow, dead or full of strange things delays nothing but its own rows.

mod connect;
mod decode;
mod error;
mod read;
mod scan;
mod sets;
mod tls;
mod url;
mod watch;

pub use connect::{Command, Connection, Reply};
pub use error::{RedisFault, RedisUrlError, TlsTrouble};
pub use sets::{RedisSets, parse_list};
pub use url::RedisUrl;
pub use watch::{RedisOptions, RedisState, read_once, watch};
