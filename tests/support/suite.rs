//! The helpers for the tests of one suite: `support`, with servers that only this suite uses.

#![allow(dead_code, unused_imports, reason = "each suite uses a part of it")]

use locktop::demo::postgres::EmbeddedServer;

pub(crate) use crate::support::*;

static SERVERS: Servers = Servers::new();

/// A server for all tests of this suite, started by the first test that needs it. See [`Servers`] for its
/// end.
pub(crate) async fn server() -> &'static EmbeddedServer {
    SERVERS.get(None, async || start(None).await).await
}

/// The same for one of the supported major versions.
pub(crate) async fn server_of(version: u32) -> &'static EmbeddedServer {
    SERVERS.get(Some(version), async || start(Some(version)).await).await
}
