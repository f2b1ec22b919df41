//! One attempt at one address, under one time limit.

use std::net::IpAddr;
use std::time::Duration;

use super::super::conninfo::{ConnInfo, Endpoint, Host, SslMode};
use super::super::error::ConnectError;
use super::super::tls::{Connector, Progress, Stage};
use super::{Raw, diagnose};

/// What to try.
pub(super) struct Attempt<'a> {
    pub(super) info: &'a ConnInfo,
    pub(super) endpoint: &'a Endpoint,
    /// The endpoint for people.
    pub(super) place: String,
    /// Host name, empty for a socket.
    pub(super) host: &'a str,
    /// Address, none for a socket.
    pub(super) address: Option<IpAddr>,
}

/// What came of it, if not a connection.
pub(super) struct Failure {
    /// How far it came.
    pub(super) stage: Stage,
    /// What happened.
    pub(super) error: ConnectError,
}

impl Failure {
    pub(super) fn is_tls(&self) -> bool {
        matches!(self.error, ConnectError::TlsFailed { .. })
    }
}

impl Attempt<'_> {
    /// Connects with or without TLS.
    pub(super) async fn run(&self, mode: SslMode) -> Result<Raw, Failure> {
        let progress = Progress::default();
        let tls = Connector::watched(progress.clone()).map_err(|error| Failure {
            stage: Stage::Reaching,
            error: ConnectError::Other(format!("TLS cannot be set up: {error}")),
        })?;
        let config = self.config(mode);
        let failed = |error| Failure { stage: progress.stage(), error };
        match within(self.info.connect_timeout, config.connect(tls)).await {
            Ok(Ok(raw)) => Ok(raw),
            Ok(Err(error)) => Err(failed(diagnose::diagnose(self, progress.stage(), &error))),
            Err(seconds) if progress.stage() == Stage::Reaching => Err(failed(ConnectError::TimedOut {
                place: self.place.clone(),
                port: self.endpoint.port,
                seconds,
            })),
            Err(seconds) => Err(failed(ConnectError::Silent { place: self.place.clone(), seconds })),
        }
    }

    fn config(&self, mode: SslMode) -> tokio_postgres::Config {
        let info = self.info;
        let mut config = tokio_postgres::Config::new();
        match (&self.endpoint.host, self.address) {
            (Host::Unix(directory), _) => {
                config.host_path(directory);
            }
            (_, Some(address)) => {
                config.host(self.host).hostaddr(address);
            }
            (_, None) => {
                config.host(self.host);
            }
        }
        config.port(self.endpoint.port).user(&info.user).dbname(&info.dbname);
        if let Some(password) = self.password() {
            config.password(password);
        }
        if let Some(options) = &info.options {
            config.options(options);
        }
        config
            .application_name(&info.application_name)
            .ssl_mode(match mode {
                SslMode::Disable | SslMode::Allow => tokio_postgres::config::SslMode::Disable,
                SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
                SslMode::Require => tokio_postgres::config::SslMode::Require,
            })
            .channel_binding(info.channel_binding)
            .target_session_attrs(info.session)
            .keepalives(info.keepalives.on)
            .keepalives_idle(info.keepalives.idle)
            .keepalives_interval(info.keepalives.interval)
            .keepalives_retries(info.keepalives.count);
        if let Some(timeout) = info.keepalives.user_timeout {
            config.tcp_user_timeout(timeout);
        }
        config
    }

    /// The password to send here.
    pub(super) fn password(&self) -> Option<&str> {
        let given = self.info.password.as_ref().map(|(secret, _)| secret.expose());
        given.or_else(|| self.endpoint.password.as_ref().map(|(secret, _)| secret.expose()))
    }
}

/// Waits for `work`, at most so long; the error is the limit in seconds.
pub(super) async fn within<F: Future>(limit: Option<Duration>, work: F) -> Result<F::Output, u64> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| limit.as_secs()),
        None => Ok(work.await),
    }
}
