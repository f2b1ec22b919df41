//! One attempt at one address, under one time limit.

use std::io;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio_postgres::SimpleQueryMessage;

use super::Raw;
use super::diagnose::{self, Attempt};
use super::listen::Canceller;
use crate::auth_watch::Watched;
use crate::conninfo::{SessionAttrs, SslMode};
use crate::error::ConnectError;
use crate::message;
use crate::tls::{Connector, Progress, Stage};

pub(super) struct Failure {
    /// How far the attempt came.
    pub(super) stage: Stage,
    pub(super) error: ConnectError,
}

impl Failure {
    pub(super) fn is_tls(&self) -> bool {
        matches!(self.error, ConnectError::TlsFailed { .. })
    }
}

enum Trouble {
    Dial(io::Error),
    Server(tokio_postgres::Error),
}

impl Attempt<'_> {
    pub(super) async fn run(&self, mode: SslMode) -> Result<Raw, Failure> {
        let progress = Progress::default();
        let info = self.info;
        let tls = Connector::new(&info.tls, self.host, self.address, &info.require_auth, progress.clone());
        let (address, config) = (self.to(), self.config(mode));
        let canceller = |client: &tokio_postgres::Client| {
            Canceller::new(client.cancel_token(), address.clone(), tls.clone())
        };
        let connecting = async {
            let stream = address.dial().await.map_err(Trouble::Dial)?;
            progress.set(Stage::Reached);
            let stream = Watched::new(stream, self.watch(mode));
            config.connect_raw(stream, tls.clone()).await.map_err(Trouble::Server)
        };
        let failed = |error| Failure { stage: progress.stage(), error };
        match within(info.connect_timeout, Box::pin(connecting)).await {
            Ok(Ok((client, connection))) => match tls.certificate() {
                Ok(()) => {
                    let tls = tls.is_encrypted().then(|| info.tls.mode.of_tls());
                    Ok(Raw { canceller: canceller(&client), client, connection, tls })
                }
                Err(reason) => {
                    Err(failed(ConnectError::CertificateNotUsed { place: self.place.clone(), reason }))
                }
            },
            Ok(Err(Trouble::Dial(error))) => Err(failed(diagnose::unreachable(self, &error))),
            Ok(Err(Trouble::Server(error))) => {
                Err(failed(diagnose::diagnose(self, progress.stage(), &error)))
            }
            Err(seconds) if progress.stage() == Stage::Reaching => Err(failed(ConnectError::TimedOut {
                place: self.place.clone(),
                port: self.endpoint.port,
                seconds,
            })),
            Err(seconds) => Err(failed(ConnectError::Silent { place: self.place.clone(), seconds })),
        }
    }
}

/// Waits for `work`, at most for `limit`; the error is the limit in seconds.
pub(super) async fn within<F: Future>(limit: Option<Duration>, work: F) -> Result<F::Output, u64> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit.as_secs()),
        None => Ok(work.await),
    }
}

// Checks a server against `target_session_attrs`.
// Since PostgreSQL 14 a server reports `in_hot_standby` and `default_transaction_read_only` at the start of a session;
// if something in between removes them, they are queried, as in libpq (`CONNECTION_CHECK_TARGET` in
// `src/interfaces/libpq/fe-connect.c`).

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
