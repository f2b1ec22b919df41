//! A connection to one Redis server: its URL, TLS, and commands with a limit of time.

mod connect;
mod error;
mod tls;
mod url;

pub use connect::{Command, Connection, Reply};
pub use error::{RedisFault, RedisUrlError, TlsTrouble};
pub use url::RedisUrl;
