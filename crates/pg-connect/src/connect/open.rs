//! One attempt at one address, under one time limit.

use std::time::Duration;

use futures_util::future::{Either, select};
use tokio_postgres::SimpleQueryMessage;

use super::diagnose::{self, Attempt, message};
use super::listen::Canceller;
use super::{Place, Raw};
use crate::auth_watch::Watched;
use crate::conninfo::{SessionAttrs, SslMode};
use crate::error::ConnectError;
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

impl Attempt<'_> {
    pub(super) async fn run(&self, mode: SslMode) -> Result<Raw, Failure> {
        let progress = Progress::default();
        let info = self.info;
        let tls = Connector::new(&info.tls, self.host, self.address, &info.require_auth, progress.clone());
        let (address, config) = (self.to(), self.config(mode));
        let place = || self.place.clone();
        let connecting = async {
            let stream = address.dial().await.map_err(|error| diagnose::unreachable(self, &error))?;
            progress.set(Stage::Reached);
            let stream = Watched::new(stream, self.watch(mode));
            let (client, connection) = config
                .connect_raw(stream, tls.clone())
                .await
                .map_err(|error| diagnose::diagnose(self, progress.stage(), &error))?;
            let used = tls.certificate();
            used.map_err(|reason| ConnectError::CertificateNotUsed { place: place(), reason })?;
            let canceller = Canceller::new(client.cancel_token(), address.clone(), tls.clone());
            let tls = tls.is_encrypted().then(|| info.tls.mode.of_tls());
            let place = Place { host: self.endpoint.host.text(), port: self.endpoint.port, tls };
            Ok(Raw { client, connection, canceller, place })
        };
        let done = within(info.connect_timeout, Box::pin(connecting)).await;
        let late = |seconds| match progress.stage() {
            Stage::Reaching => {
                Err(ConnectError::TimedOut { place: place(), port: self.endpoint.port, seconds })
            }
            _ => Err(ConnectError::Silent { place: place(), seconds }),
        };
        done.unwrap_or_else(late).map_err(|error| Failure { stage: progress.stage(), error })
    }
}

/// Waits for `work`, at most for `limit`; the error is the limit in seconds.
pub(super) async fn within<F: Future>(limit: Option<Duration>, work: F) -> Result<F::Output, u64> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit.as_secs()),
        None => Ok(work.await),
    }
}

/// Delays between connection attempts: 0.5 s, doubling up to 10 s. Up to a minute after a server that accepted the
/// connection but did not answer, because each such attempt may leave a process there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The delay before the next attempt; `silent` if the last one had no answer.
    pub fn failed(&mut self, silent: bool) -> Duration {
        let longest = Duration::from_secs(if silent { 60 } else { 10 });
        let delay = Duration::from_millis(500) * 2u32.saturating_pow(self.attempts.min(7));
        self.attempts = self.attempts.saturating_add(1);
        delay.min(longest)
    }

    /// The number of the next attempt, from 1.
    #[must_use]
    pub fn attempts(self) -> u32 {
        self.attempts
    }
}

// Checks a server against `target_session_attrs`.
// Since PostgreSQL 14 a server reports `in_hot_standby` and `default_transaction_read_only` at the start of a session;
// if something in between removes them, they are queried, as in libpq (`CONNECTION_CHECK_TARGET` in
// `src/interfaces/libpq/fe-connect.c`).

/// The error names the actual state.
pub(super) async fn check(raw: &mut Raw, wanted: SessionAttrs) -> Result<(), String> {
    let (fits, problem) = match wanted {
        SessionAttrs::Any | SessionAttrs::PreferStandby => return Ok(()),
        SessionAttrs::Primary => (!is_standby(raw).await?, "it is a standby"),
        SessionAttrs::Standby => (is_standby(raw).await?, "it is not a standby"),
        SessionAttrs::ReadWrite => (!is_read_only(raw).await?, "its sessions are read-only"),
        SessionAttrs::ReadOnly => (is_read_only(raw).await?, "its sessions are not read-only"),
    };
    if fits { Ok(()) } else { Err(problem.to_owned()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_grows_to_ten_seconds_and_to_a_minute_after_silence() {
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..7).map(|_| backoff.failed(false).as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(backoff.attempts(), 7);
        assert_eq!(backoff.failed(true).as_secs(), 60);
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..8).map(|_| backoff.failed(true).as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]);
    }
}
