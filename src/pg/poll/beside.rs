//! Another connection next to the polling one, with the same session settings.

use futures_util::future::join;
use pg_connect::connect::Connection;
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

use super::opening::{self, Opening};
use super::{Limits, OpenError, pooler};
use crate::model::snapshot::Pooling;
use crate::pg::scope::Scope;
use crate::pg::sql;

/// A connection with the settings of a session only.
///
/// # Errors
/// Also if a pooler keeps no session for it.
pub async fn open_plain(info: &ConnInfo, limits: &Limits) -> Result<Connection, OpenError> {
    match Box::pin(open_beside(info, limits, std::future::ready(None))).await? {
        (_, Pooling::Transactions) => Err(pooler::no_session()),
        (connection, _) => Ok(connection),
    }
}

/// The same next to a polling connection that was made with the same `info`; `known` is the pooling found for that one.
/// If a pooler is in transaction mode, nothing is set: each message must include what it needs.
pub async fn open_beside(
    info: &ConnInfo,
    limits: &Limits,
    known: impl Future<Output = Option<Pooling>>,
) -> Result<(Connection, Pooling), OpenError> {
    let opening = Box::pin(Opening::connect(info)).await?;
    let pooling = Box::pin(opening.pooling(info, limits, known)).await?;
    if pooling == Pooling::Transactions {
        return Ok((opening.ready(), pooling));
    }
    let setup = async {
        let client = opening.client();
        let path = opening::pinned(client).await?;
        let (set, words) =
            join(opening::settings(client, limits, &path, Scope::Own), client.batch_execute(sql::WORDS))
                .await;
        let set = set.and(words);
        set.map_err(|error| OpenError::Setup(message(&error)))
    };
    opening.within(limits.poll_timeout, setup).await?;
    Ok((opening.ready(), pooling))
}
