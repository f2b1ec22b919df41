//! Checks a server against `target_session_attrs`.
//!
//! Since PostgreSQL 14 a server reports `in_hot_standby` and `default_transaction_read_only` at the start of a session;
//! if something in between removes them, they are queried, as in libpq (`CONNECTION_CHECK_TARGET` in
//! `src/interfaces/libpq/fe-connect.c`).

use futures_util::future::{Either, select};
use tokio_postgres::SimpleQueryMessage;

use super::super::conninfo::SessionAttrs;
use super::super::message;
use super::Raw;

/// The error names the actual state.
pub(super) async fn check(raw: &mut Raw, wanted: SessionAttrs) -> Result<(), String> {
    let is = match wanted {
        SessionAttrs::Any | SessionAttrs::PreferStandby => return Ok(()),
        SessionAttrs::Primary | SessionAttrs::Standby => is_standby(raw).await?,
        SessionAttrs::ReadWrite | SessionAttrs::ReadOnly => is_read_only(raw).await?,
    };
    match (wanted, is) {
        (SessionAttrs::Primary, true) => Err("it is a standby".to_owned()),
        (SessionAttrs::Standby, false) => Err("it is not a standby".to_owned()),
        (SessionAttrs::ReadWrite, true) => Err("its sessions are read-only".to_owned()),
        (SessionAttrs::ReadOnly, false) => Err("its sessions are not read-only".to_owned()),
        _ => Ok(()),
    }
}

async fn is_standby(raw: &mut Raw) -> Result<bool, String> {
    if let Some(standby) = reported(raw, "in_hot_standby") {
        return Ok(standby);
    }
    Ok(ask(raw, "SELECT pg_catalog.pg_is_in_recovery()").await? == "t")
}

async fn is_read_only(raw: &mut Raw) -> Result<bool, String> {
    let both = reported(raw, "in_hot_standby").zip(reported(raw, "default_transaction_read_only"));
    if let Some((standby, read_only)) = both {
        return Ok(standby || read_only);
    }
    Ok(ask(raw, "SHOW transaction_read_only").await? == "on")
}

fn reported(raw: &Raw, name: &str) -> Option<bool> {
    raw.connection.parameter(name).map(|value| value == "on")
}

/// Runs a query while no task drives the connection.
async fn ask(raw: &mut Raw, question: &str) -> Result<String, String> {
    let Raw { client, connection, .. } = raw;
    let asking = std::pin::pin!(client.simple_query(question));
    let answer = match select(asking, &mut *connection).await {
        Either::Left((answer, _)) => answer,
        Either::Right((ended, _)) => {
            return Err(ended
                .err()
                .map_or_else(|| "it closed the connection".to_owned(), |error| message(&error)));
        }
    };
    let rows = answer.map_err(|error| message(&error))?;
    let value = rows.iter().find_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
        _ => None,
    });
    value.ok_or_else(|| "it did not report its state".to_owned())
}
