//! A connection to one Redis server: its URL, TLS, and commands with a time limit.

mod connect;
mod error;
mod fault;
mod listen;
mod stream;
mod tls;
mod url;

pub use connect::{Command, Connection, Reply};
pub use error::{RedisUrlError, TlsTrouble};
pub use fault::RedisFault;
pub(crate) use listen::listen;
pub use url::RedisUrl;
