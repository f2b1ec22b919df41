use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo};

use super::RedisUrlError;
use super::tls::TlsFiles;

/// The address of a server. It is printed without its password.
#[derive(Clone)]
pub struct RedisUrl {
    pub(super) info: Arc<ConnectionInfo>,
    /// The files for TLS, if the connection uses it.
    pub(super) tls: TlsFiles,
}

impl RedisUrl {
    /// Parses a URL: `redis://` (or `valkey://`) for TCP, `rediss://` (or `valkeys://`) for TCP with TLS, `redis+unix://` (or
    /// `unix://`) for a socket, with `?db=`, `&user=` and `&pass=`.
    ///
    /// With TLS the server's certificate is verified by the system's authorities, or by those in the file that
    /// `?ssl_ca_certs=` names; `ssl_certfile` and `ssl_keyfile` name a client certificate and its key; `#insecure` at the end
    /// accepts any certificate.
    ///
    /// # Errors
    /// If it is invalid; the error repeats nothing of it.
    pub fn parse(text: &str) -> Result<Self, RedisUrlError> {
        let text = text.trim();
        let info = ConnectionInfo::from_str(text).map_err(|error| {
            // The crate's own sentences contain nothing of the URL; a detail may.
            let whole = error.to_string();
            RedisUrlError::Syntax(whole.split(" - ").next().unwrap_or_default().to_lowercase())
        })?;
        if info.redis_settings().db() < 0 {
            return Err(RedisUrlError::Syntax("the number of a database cannot be negative".to_owned()));
        }
        let settings = info.redis_settings().clone().set_lib_name("locktop", env!("CARGO_PKG_VERSION"));
        let url = redis::parse_redis_url(text);
        let encrypted = is_encrypted(&info);
        let tls = TlsFiles::of(url.iter().flat_map(|url| url.query_pairs()), encrypted)?;
        Ok(Self { info: Arc::new(info.set_redis_settings(settings)), tls })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        is_encrypted(&self.info)
    }

    /// Host and port, or the path of a socket.
    fn place(&self) -> (&str, u16, Option<&Path>) {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host, *port, None)
            }
            ConnectionAddr::Unix(path) => ("", 0, Some(path)),
            // The crate may add other kinds.
            _ => ("", 0, None),
        }
    }
}

fn is_encrypted(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
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
        match self.place() {
            (_, _, Some(path)) => write!(f, "{}", path.display())?,
            (host, port, None) if host.contains(':') => write!(f, "[{host}]:{port}")?,
            (host, port, None) => write!(f, "{host}:{port}")?,
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
    /// Whether this is the same database of the same server; the user and the encryption make no difference.
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place() && self.info.redis_settings().db() == other.info.redis_settings().db()
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
    fn an_invalid_url_is_refused_and_not_repeated_in_the_error() {
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
    fn tls_options_of_a_url_are_accepted_or_refused() {
        let table = [
            ("rediss://host?ssl_cert_reqs=s3cret", "ssl_cert_reqs in a Redis URL is not known"),
            ("rediss://host?sslmode=verify-full", "sslmode in a Redis URL is not known"),
            ("redis://:s3cret@host?ssl_ca_certs=/ca.pem", "is not encrypted: write rediss://"),
            ("rediss://host?ssl_certfile=/me.pem", "belong together"),
            ("rediss://host?ssl_keyfile=/me.key", "belong together"),
            ("rediss://:s3cret@host#verify", "only #insecure is supported"),
            ("redis+unix:///run/redis.sock?ssl_ca_certs=/ca.pem", "is not encrypted"),
        ];
        for (text, expected) in table {
            let error = RedisUrl::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{text}: {error}");
        }
        for text in [
            "rediss://:s3cret@host:7000#insecure",
            "valkeys://host:7000/0",
            "rediss://host:7000?ssl_ca_certs=/ca.pem&ssl_certfile=/me.pem&ssl_keyfile=/me.key",
        ] {
            assert_eq!(RedisUrl::parse(text).unwrap().to_string(), "host:7000");
        }
    }

    #[test]
    fn two_urls_may_be_one_server() {
        let url = |text| RedisUrl::parse(text).unwrap();
        assert_eq!(url("redis://a:b@host"), url("redis://host:6379/0"));
        assert_eq!(url("rediss://host"), url("rediss://host:6379#insecure"));
        assert_ne!(url("redis://host/1"), url("redis://host/2"));
    }
}
