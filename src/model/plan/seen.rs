//! A session as it was seen: what the server compares before it signals. Which of it has to be the same, `signal::rule` decides. The record has
//! it by these names.

use serde::{Serialize, Serializer};

use crate::model::backend::Backend;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::{Text, Timestamp};

/// What a session is sent: a signal, by a function of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: the query that it runs is cancelled.
    Cancel,
    /// SIGTERM: the session is ended.
    Terminate,
}

impl Signal {
    /// The function of the server that sends it.
    pub const fn function(self) -> &'static str {
        match self {
            Self::Cancel => "pg_cancel_backend",
            Self::Terminate => "pg_terminate_backend",
        }
    }
}

/// A session, and the situation that it was seen in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionTarget {
    /// Process id of its backend.
    pub pid: i32,
    /// When it began: without that there is no identity and nothing can be asked.
    pub backend_start: Timestamp,
    /// Its transaction. In a pool the same session serves somebody else a moment later, in another one.
    #[serde(skip_serializing_if = "Seen::is_any")]
    pub xact_start: Seen<Option<Timestamp>>,
    /// Its query, or the last one; a query that is to be cancelled also has to be active.
    #[serde(skip_serializing_if = "Seen::is_any")]
    pub query_start: Seen<Option<Timestamp>>,
    /// When it began to be in the state that it is in.
    #[serde(skip_serializing_if = "Seen::is_any")]
    pub state_change: Seen<Option<Timestamp>>,
    /// Who is behind it, as the server knows its client.
    pub client: Client,
    /// A lock that it has to hold still, in this mode.
    #[serde(serialize_with = "told", skip_serializing_if = "Option::is_none")]
    pub holds: Option<(LockTag, LockMode)>,
    /// The lock has to be one of the session, whatever client the session serves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
    /// Somebody has to wait for it still, as a holder or as one ahead in a queue.
    pub blocks: bool,
}

impl SessionTarget {
    /// Whether the lock is one that a session can release in the middle of a transaction, by a statement.
    pub fn holds_a_key(&self) -> bool {
        self.holds.is_some_and(|(tag, _)| tag.locktype() == LockType::Advisory)
    }
}

/// Who is behind a session. A pool tells its clients' names to the server at the most, and not always those: another one is somebody
/// else, and the same one proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Client {
    /// `application_name`; none where the client gave none.
    pub application: Option<Text>,
    /// OID of the role that it logged in as.
    pub usesysid: Option<u32>,
    /// Its address, `[local]` for a Unix socket.
    pub address: Option<Text>,
    /// `client_port`: -1 for a Unix socket; none where there is no client, or the role may not see it.
    pub port: Option<i32>,
}

impl Client {
    /// As a row of `pg_stat_activity` has it.
    pub fn of(backend: &Backend) -> Self {
        Self {
            application: backend.application.clone(),
            usesysid: backend.usesysid,
            address: backend.client.clone(),
            port: backend.client_port,
        }
    }

    /// The name, where it can be compared: bytes that could not be read stand in it as U+FFFD, whatever they were.
    pub fn comparable_application(&self) -> Option<Option<&str>> {
        let name = self.application.as_deref();
        let is_read = name.is_none_or(|name| !name.contains(char::REPLACEMENT_CHARACTER));
        is_read.then_some(name)
    }

    /// Whether nothing tells one from the other.
    pub fn may_be(&self, other: &Self) -> bool {
        let (was, is) = (self.comparable_application(), other.comparable_application());
        (was.is_none() || is.is_none() || was == is)
            && (self.usesysid, &self.address, self.port) == (other.usesysid, &other.address, other.port)
    }
}

/// Whether something has to be as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Seen<T> {
    /// The server acts only while it is this.
    Same(T),
    /// It may have changed since.
    Any,
}

impl<T> Seen<T> {
    fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }
}

/// A lock as the record has it: its tag and mode in words.
#[expect(clippy::ref_option, reason = "serde hands a field over so")]
fn told<S: Serializer>(held: &Option<(LockTag, LockMode)>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Holds {
        locktype: &'static str,
        database: Option<u32>,
        relation: Option<u32>,
        /// An advisory key as it is written: `815` or `(1, 100)`.
        key: Option<String>,
        mode: &'static str,
    }
    let holds = |(tag, mode): (LockTag, LockMode)| Holds {
        locktype: tag.locktype().as_str(),
        database: tag.database(),
        relation: tag.relation(),
        key: tag.advisory_key().map(|key| key.to_string()),
        mode: mode.as_str(),
    };
    held.map(holds).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(application: Option<&str>, usesysid: u32, address: &str, port: i32) -> Client {
        Client {
            application: application.map(Into::into),
            usesysid: Some(usesysid),
            address: Some(address.into()),
            port: Some(port),
        }
    }

    #[test]
    fn each_part_tells_a_client_from_another() {
        let seen = client(Some("web"), 10, "10.0.0.1", 5000);
        for (other, may_be) in [
            (seen.clone(), true),
            (client(Some("web-2"), 10, "10.0.0.1", 5000), false),
            (client(None, 10, "10.0.0.1", 5000), false),
            (client(Some("web"), 11, "10.0.0.1", 5000), false),
            (client(Some("web"), 10, "[local]", 5000), false),
            (client(Some("web"), 10, "10.0.0.1", 5001), false),
            (Client::default(), false),
        ] {
            assert_eq!((seen.may_be(&other), other.may_be(&seen)), (may_be, may_be), "{other:?}");
        }
    }

    #[test]
    fn a_name_that_could_not_be_read_is_compared_with_nothing() {
        let unread = client(Some("caf\u{fffd}"), 10, "10.0.0.1", 5000);
        assert_eq!(unread.comparable_application(), None);
        assert!(unread.may_be(&client(Some("café"), 10, "10.0.0.1", 5000)));
        assert!(client(None, 10, "10.0.0.1", 5000).may_be(&unread));
        assert!(!unread.may_be(&client(Some("caf\u{fffd}"), 10, "10.0.0.1", 5001)), "the rest is");
    }
}
