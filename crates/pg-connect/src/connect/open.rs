//! One attempt at one address, under one time limit.

use std::io;
use std::time::Duration;

use super::super::auth_watch::Watched;
use super::super::conninfo::SslMode;
use super::super::error::ConnectError;
use super::super::tls::{Connector, Progress, Stage};
use super::attempt::Attempt;
use super::listen::Canceller;
use super::{Raw, diagnose};

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
