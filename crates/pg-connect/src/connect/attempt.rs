//! One attempt at one address, under one time limit.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::super::auth_watch::{AuthWatch, Watched};
use super::super::conninfo::{ConnInfo, Endpoint, Host, Negotiation, RequireAuth, SslMode, socket};
use super::super::error::ConnectError;
use super::super::tls::{Connector, Progress, Stage};
use super::cancel::Canceller;
use super::socket::Address;
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

/// An error on the way.
enum Trouble {
    Dial(io::Error),
    Server(tokio_postgres::Error),
}

impl Attempt<'_> {
    /// Connects with or without TLS.
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

    /// What is watched of the stream: with TLS the messages are inside of that, and watched there.
    fn watch(&self, mode: SslMode) -> AuthWatch {
        let tls = mode > SslMode::Allow;
        match self.info.tls.negotiation {
            Negotiation::Direct if tls => AuthWatch::new(&RequireAuth::default(), false),
            _ => AuthWatch::new(&self.info.require_auth, tls),
        }
    }

    fn to(&self) -> Address {
        match (&self.endpoint.host, self.address) {
            (Host::Unix(directory), _) => Address::Unix(socket(directory, self.endpoint.port)),
            (_, address) => {
                let address = address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
                Address::Tcp(SocketAddr::new(address, self.endpoint.port), self.info.keepalives)
            }
        }
    }

    fn config(&self, mode: SslMode) -> tokio_postgres::Config {
        let info = self.info;
        let mut config = tokio_postgres::Config::new();
        config.user(&info.user).dbname(&info.dbname);
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
                SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
                    tokio_postgres::config::SslMode::Require
                }
            })
            .ssl_negotiation(match info.tls.negotiation {
                Negotiation::Postgres => tokio_postgres::config::SslNegotiation::Postgres,
                Negotiation::Direct => tokio_postgres::config::SslNegotiation::Direct,
            })
            .channel_binding(info.channel_binding);
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
