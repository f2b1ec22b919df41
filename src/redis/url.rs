//! Where a Redis server is: `redis://user:password@host:port/database`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo};

use super::error::RedisUrlError;

/// The address of a server. What is printed of it has no password.
#[derive(Clone)]
pub struct RedisUrl {
    info: Arc<ConnectionInfo>,
}

impl RedisUrl {
    /// Reads a URL: `redis://` (or `valkey://`) for TCP, `redis+unix://` (or `unix://`) for a socket, with `?db=`,
    /// `&user=` and `&pass=`.
    ///
    /// # Errors
    /// When it is none; the error repeats nothing of it.
    pub fn parse(text: &str) -> Result<Self, RedisUrlError> {
        let text = text.trim();
        if text.starts_with("rediss:") || text.starts_with("valkeys:") {
            return Err(RedisUrlError::Tls);
        }
        let info = ConnectionInfo::from_str(text).map_err(|error| {
            // The crate's own sentences hold nothing of the URL; a detail may.
            let whole = error.to_string();
            RedisUrlError::Syntax(whole.split(" - ").next().unwrap_or_default().to_lowercase())
        })?;
        if info.redis_settings().db() < 0 {
            return Err(RedisUrlError::Syntax("a database has no negative number".to_owned()));
        }
        let settings = info.redis_settings().clone().set_lib_name("locktop", env!("CARGO_PKG_VERSION"));
        Ok(Self { info: Arc::new(info.set_redis_settings(settings)) })
    }

    /// What the crate connects with.
    pub(super) fn info(&self) -> &ConnectionInfo {
        &self.info
    }
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, RedisUrlError> {
        Self::parse(text)
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.info.redis_settings().db();
        match self.info.addr() {
            ConnectionAddr::Unix(path) => write!(f, "{}", path.display())?,
            ConnectionAddr::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}")?,
            address => write!(f, "{address}")?,
        }
        if database == 0 { Ok(()) } else { write!(f, "/{database}") }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl PartialEq for RedisUrl {
    /// Whether this is the same database of the same server; who asks makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.info.addr() == other.info.addr()
            && self.info.redis_settings().db() == other.info.redis_settings().db()
    }
}

impl Eq for RedisUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let table = [
            ("redis://localhost", "localhost:6379"),
            ("redis://me:s3cret@db.example.com:7000/2", "db.example.com:7000/2"),
            ("redis://:s3cret@[::1]:7000", "[::1]:7000"),
            ("valkey://10.0.0.1/0", "10.0.0.1:6379"),
            ("redis+unix:///run/redis.sock?db=3&pass=s3cret", "/run/redis.sock/3"),
            ("unix:///run/redis.sock", "/run/redis.sock"),
            (" redis://localhost ", "localhost:6379"),
        ];
        for (text, shown) in table {
            let url = RedisUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("s3cret"));
        }
    }

    #[test]
    fn what_is_no_url_is_refused_without_being_repeated() {
        let table = [
            "",
            "localhost:6379",
            "http://:s3cret@host",
            "redis://:s3cret@",
            "redis://:s3c/ret@host",
            "redis://:s3cret@host/x",
            "redis://:s3cret@host/-1",
            "redis://:s3cret@host:99999",
            "redis://:s3cret@0.0.0.0",
            "redis://:s3cret@host?protocol=s3cret",
        ];
        for text in table {
            let error = RedisUrl::parse(text).expect_err(text).to_string();
            assert!(error.contains("redis://[user"), "{text}: {error}");
            assert!(!error.contains("s3c"), "{text}: {error}");
            assert!(!error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn tls_is_said_to_be_missing() {
        assert_eq!(RedisUrl::parse("rediss://:s3cret@host").unwrap_err(), RedisUrlError::Tls);
    }

    #[test]
    fn two_urls_may_be_one_server() {
        let url = |text| RedisUrl::parse(text).unwrap();
        assert_eq!(url("redis://a:b@host"), url("redis://host:6379/0"));
        assert_ne!(url("redis://host/1"), url("redis://host/2"));
    }
}
