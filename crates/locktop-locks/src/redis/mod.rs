//! A connection to one Redis server: its URL, TLS, and commands with a time limit.

mod connect;
mod error;
mod stream;
mod tls;
mod url;

pub use connect::{Command, Connection, RedisFault, Reply};
pub use error::{RedisUrlError, TlsTrouble};
pub(crate) use stream::listen;
pub use url::RedisUrl;
