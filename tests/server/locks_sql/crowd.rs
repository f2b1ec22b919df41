//! Sizes: small by default, whole with `LOCKTOP_LONG=1`.

use super::db::Session;
use super::support::is_long;
use locktop::pg::conninfo::ConnInfo;

/// One of two sizes.
pub(crate) fn size(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

/// Sessions that are opened before any of them is used.
pub(crate) async fn sessions(info: &ConnInfo, count: usize) -> Vec<Session> {
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        let session = Session::open(info).await;
        // With so many at once on a small machine one may wait long for its turn.
        session.run("SET statement_timeout = '300s'").await;
        sessions.push(session);
    }
    sessions
}
