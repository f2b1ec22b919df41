//! A session as seen: what the server compares before it signals. `signal::identity` decides which values must be unchanged.
//! The record stores these field names.

use serde::{Serialize, Serializer};

use crate::model::backend::Backend;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: cancels the running query.
    Cancel,
    /// SIGTERM: terminates the session.
    Terminate,
}

impl Signal {
    pub const fn function(self) -> &'static str {
        match self {
            Self::Cancel => "pg_cancel_backend",
            Self::Terminate => "pg_terminate_backend",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionTarget {
    pub pid: i32,
    /// Start of the session: without it there is no identity, and no action is possible.
    pub backend_start: Timestamp,
    /// Its transaction. In a pool, the same session may serve another client in its next transaction.
    #[serde(skip_serializing_if = "Seen::is_any")]
    pub xact_start: Seen<Option<Timestamp>>,
    /// The current or last query; to be cancelled, the query must also be active.
    #[serde(skip_serializing_if = "Seen::is_any")]
    pub query_start: Seen<Option<Timestamp>>,
    #[serde(skip_serializing_if = "Seen::is_any")]
    pub state_change: Seen<Option<Timestamp>>,
    pub client: Client,
    #[serde(serialize_with = "told", skip_serializing_if = "Option::is_none")]
    pub holds: Option<(LockTag, LockMode)>,
    /// The lock must be a session-level lock, whatever client the session serves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
    /// A session must still wait for it, as a holder or as one ahead in a queue.
    pub blocks: bool,
}

impl SessionTarget {
    /// A session that is identified by its lock, whatever it runs.
    pub(super) fn by_lock(backend: &Backend, backend_start: Timestamp, held: (LockTag, LockMode)) -> Self {
        Self {
            pid: backend.pid,
            backend_start,
            client: Client::of(backend),
            xact_start: Seen::Any,
            query_start: Seen::Any,
            state_change: Seen::Any,
            holds: Some(held),
            keeps: false,
            blocks: false,
        }
    }

    /// Whether a statement can release the lock in the middle of a transaction.
    pub fn holds_a_key(&self) -> bool {
        self.holds.is_some_and(|(tag, _)| tag.locktype() == LockType::Advisory)
    }
}

/// The client of a session. A pooler may pass the names of its clients to the server, but not always: a different name
/// means a different client, and the same name proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Client {
    /// `application_name`; `None` if the client gave none.
    pub application: Option<Text>,
    pub usesysid: Option<u32>,
    /// Client address; `[local]` for a Unix socket.
    pub address: Option<Text>,
    /// `client_port`: -1 for a Unix socket; `None` if there is no client or the role may not see it.
    pub port: Option<i32>,
}

impl Client {
    pub fn of(backend: &Backend) -> Self {
        Self {
            application: backend.application.clone(),
            usesysid: backend.usesysid,
            address: backend.client.clone(),
            port: backend.client_port,
        }
    }

    /// The name if it can be compared: bytes that could not be read appear in it as U+FFFD, whatever they were.
    pub fn comparable_application(&self) -> Option<Option<&str>> {
        let name = self.application.as_deref();
        let is_read = name.is_none_or(|name| !name.contains(char::REPLACEMENT_CHARACTER));
        is_read.then_some(name)
    }

    /// Whether no value distinguishes the two.
    pub fn may_be(&self, other: &Self) -> bool {
        let (was, is) = (self.comparable_application(), other.comparable_application());
        (was.is_none() || is.is_none() || was == is)
            && (self.usesysid, &self.address, self.port) == (other.usesysid, &other.address, other.port)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Seen<T> {
    Same(T),
    Any,
}

impl<T> Seen<T> {
    fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }
}

#[expect(clippy::ref_option, reason = "serde hands a field over so")]
fn told<S: Serializer>(held: &Option<(LockTag, LockMode)>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Holds {
        locktype: &'static str,
        database: Option<u32>,
        relation: Option<u32>,
        /// The key as written: `815` or `(1, 100)`.
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
