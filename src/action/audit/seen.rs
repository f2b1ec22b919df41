//! What has to be of a session as it was seen, in a line of the record.

use serde::Serialize;

use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::{Client, Seen};

/// Who was behind a session, as far as the server knew.
#[derive(Debug, Serialize)]
pub(super) struct ClientLine<'a> {
    application: Option<&'a str>,
    usesysid: Option<u32>,
    address: Option<&'a str>,
    port: Option<i32>,
}

/// A time that has to be the same, or none.
#[derive(Debug, Serialize)]
pub(super) struct Moment(Option<Timestamp>);

/// A lock that has to be held still.
#[derive(Debug, Serialize)]
pub(super) struct Holds {
    locktype: &'static str,
    database: Option<u32>,
    relation: Option<u32>,
    /// An advisory key as it is written: `815` or `(1, 100)`.
    key: Option<String>,
    mode: &'static str,
}

impl<'a> ClientLine<'a> {
    pub(super) fn of(client: &'a Client) -> Self {
        Self {
            application: client.application.as_deref(),
            usesysid: client.usesysid,
            address: client.address.as_deref(),
            port: client.port,
        }
    }
}

impl Holds {
    pub(super) fn of((tag, mode): (LockTag, LockMode)) -> Self {
        Self {
            locktype: tag.locktype().as_str(),
            database: tag.database(),
            relation: tag.relation(),
            key: tag.advisory_key().map(|key| key.to_string()),
            mode: mode.as_str(),
        }
    }
}

/// The time, where it has to be the same.
pub(super) fn same(seen: Seen<Option<Timestamp>>) -> Option<Moment> {
    match seen {
        Seen::Same(at) => Some(Moment(at)),
        Seen::Any => None,
    }
}
