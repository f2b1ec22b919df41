//! One attempt at one address, under one time limit, and the meaning of its error, by SQLSTATE and by the stage of the
//! connection.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio_postgres::error::{DbError, SqlState};

use super::listen::Canceller;
use super::{Place, Raw};
use crate::auth_watch::{AuthWatch, Refused, Watched};
use crate::conninfo::{ConnInfo, Endpoint, Host, Negotiation, PasswordOrigin, Secret, SslMode, socket};
use crate::error::{ConnectError, ConnectErrorKind as Kind};
use crate::socket::Address;
use crate::tls::{Connector, Progress, Stage, TlsError};
use locktop_base::text;

pub(super) struct Failure {
    /// How far the attempt came.
    pub(super) stage: Stage,
    pub(super) error: ConnectError,
}

impl Failure {
    pub(super) fn is_tls(&self) -> bool {
        self.error.kind == Kind::TlsFailed
    }
}

pub(super) struct Attempt<'a> {
    pub(super) info: &'a ConnInfo,
    pub(super) endpoint: &'a Endpoint,
    /// Host name; empty for a socket.
    pub(super) host: &'a str,
    /// `None` for a socket.
    pub(super) address: Option<IpAddr>,
}

impl Attempt<'_> {
    pub(super) async fn run(&self, mode: SslMode) -> Result<Raw, Failure> {
        let progress = Progress::default();
        let info = self.info;
        let tls = Connector::new(&info.tls, self.host, self.address, &info.require_auth, progress.clone());
        let (address, config) = (self.to(), self.config(mode));
        let connecting = async {
            let stream = address.dial().await.map_err(|error| unreachable(self, &error))?;
            progress.set(Stage::Reached);
            let stream = Watched::new(stream, self.watch(mode));
            let (client, connection) = config
                .connect_raw(stream, tls.clone())
                .await
                .map_err(|error| diagnose(self, progress.stage(), &error))?;
            let used = tls.certificate();
            used.map_err(|reason| self.error(Kind::CertificateNotUsed, reason))?;
            let canceller = Canceller::new(client.cancel_token(), address.clone(), tls.clone());
            let tls = tls.is_encrypted().then(|| info.tls.mode.of_tls());
            let place = Place { host: self.endpoint.host.text(), port: self.endpoint.port, tls };
            Ok(Raw { client, connection, canceller, place })
        };
        let done = within(info.connect_timeout, Box::pin(connecting)).await;
        let late = |seconds| {
            Err(match progress.stage() {
                Stage::Reaching => self.error(Kind::TimedOut { port: self.endpoint.port, seconds }, ""),
                _ => self.error(Kind::Silent(seconds), ""),
            })
        };
        done.unwrap_or_else(late).map_err(|error| Failure { stage: progress.stage(), error })
    }

    /// With TLS the messages are inside it, and watched there.
    fn watch(&self, mode: SslMode) -> AuthWatch {
        let tls = mode > SslMode::Allow;
        match self.info.tls.negotiation {
            Negotiation::Direct if tls => AuthWatch::none(),
            _ => AuthWatch::new(&self.info.require_auth, tls),
        }
    }

    /// The address to connect to; localhost for a host without one.
    fn to(&self) -> Address {
        match (&self.endpoint.host, self.address) {
            (Host::Unix(directory), _) => Address::Unix(socket(directory, self.endpoint.port)),
            (_, address) => {
                let address = address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
                Address::Tcp(SocketAddr::new(address, self.endpoint.port), self.info.keepalives.clone())
            }
        }
    }

    fn config(&self, mode: SslMode) -> tokio_postgres::Config {
        let info = self.info;
        let mut config = tokio_postgres::Config::new();
        config.user(&info.user).dbname(&info.dbname);
        if let Some((password, _)) = self.password() {
            config.password(password.expose());
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

    fn error(&self, kind: Kind, reason: impl Into<String>) -> ConnectError {
        ConnectError::new(kind, self.endpoint.place(), reason)
    }

    fn password(&self) -> Option<&(Secret, PasswordOrigin)> {
        self.info.password.as_ref().or(self.endpoint.password.as_ref())
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

const MESSAGE_CHARS: usize = 300;

fn diagnose(attempt: &Attempt<'_>, stage: Stage, error: &tokio_postgres::Error) -> ConnectError {
    if let Some(error) = error.as_db_error() {
        return from_server(attempt, error);
    }
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let io_error = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match (stage, io_error) {
        (Stage::Handshake, Some(error)) => return tls(attempt, TlsError::of_handshake(error)),
        (Stage::Handshake, None) => return attempt.error(Kind::TlsFailed, line(&cause)),
        (_, Some(error)) => return broken(attempt, error),
        (_, None) => {}
    }
    // These have no kind to match on: the texts are the driver's own.
    match cause.as_str() {
        "password missing" => {
            let note = attempt.info.password_note.clone().unwrap_or_default();
            attempt.error(Kind::NoPassword(line(&attempt.info.user)), note)
        }
        "server does not support TLS" => attempt.error(Kind::TlsNotOffered(attempt.info.tls.mode.word()), ""),
        _ if error.is_closed() => attempt.error(Kind::Closed, "it closed the connection during login"),
        "" => ConnectError::other(format!("{}: {error}", attempt.endpoint.place())),
        cause => {
            let reason = format!("{error}: {}", line(cause));
            attempt.error(Kind::Authentication(line(&attempt.info.user)), reason)
        }
    }
}

/// An error of TLS; a key that needs a password is a separate error, for a prompt.
fn tls(attempt: &Attempt<'_>, error: TlsError) -> ConnectError {
    match error {
        TlsError::EncryptedKey { file } => attempt.error(Kind::KeyPassword(file), ""),
        error => attempt.error(Kind::TlsFailed, line(&error.to_string())),
    }
}

/// The stream was closed by the other side, or here.
fn broken(attempt: &Attempt<'_>, error: &io::Error) -> ConnectError {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref()) {
        Some(Refused::Auth(method)) => {
            let wanted = line(attempt.info.require_auth.text().unwrap_or_default());
            return attempt.error(Kind::AuthNotAllowed { method: method.word(), wanted }, "");
        }
        Some(Refused::Size(size)) => return attempt.error(Kind::BrokenOff, size.to_string()),
        None => {}
    }
    // With TLS 1.3 the server reports only now whether it accepts the client certificate.
    if inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some() {
        return tls(attempt, TlsError::of_handshake(error));
    }
    attempt.error(Kind::Closed, io(error))
}

fn from_server(attempt: &Attempt<'_>, error: &DbError) -> ConnectError {
    let user = line(&attempt.info.user);
    let code = error.code();
    let kind = if *code == SqlState::INVALID_PASSWORD {
        Kind::WrongPassword { user, origin: attempt.password().map(|(_, origin)| origin.clone()) }
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        Kind::NoDatabase(line(&attempt.info.dbname))
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        Kind::TooManyConnections
    } else if *code == SqlState::CANNOT_CONNECT_NOW {
        Kind::NotNow
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        // One SQLSTATE for several errors; the server function that raised it tells them apart in any language.
        match error.routine() {
            Some("InitializeSessionUserId") => Kind::NoRole(user),
            _ => Kind::NotAllowed(user),
        }
    } else {
        Kind::Rejected(line(code.code()))
    };
    attempt.error(kind, line(error.message()))
}

fn unreachable(attempt: &Attempt<'_>, error: &io::Error) -> ConnectError {
    let kind = match (error.kind(), &attempt.endpoint.host) {
        (ErrorKind::NotFound, Host::Unix(_)) => Kind::NoSocket,
        (ErrorKind::PermissionDenied, Host::Unix(_)) => Kind::SocketForbidden,
        (ErrorKind::ConnectionRefused, Host::Unix(_)) => Kind::DeadSocket,
        (ErrorKind::ConnectionRefused, _) => {
            // `hostaddr` alone has no name.
            let named = Some(attempt.host).filter(|host| !host.is_empty()).map(str::to_owned);
            let host = named.or_else(|| Some(attempt.address?.to_string())).unwrap_or_default();
            Kind::Refused { host, port: attempt.endpoint.port }
        }
        _ => return attempt.error(Kind::Unreachable, io(error)),
    };
    attempt.error(kind, "")
}

/// The system's error message in one line; an end without a message gets a text of its own.
pub(super) fn io(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => line(&error.to_string()),
    }
}

fn line(message: &str) -> String {
    let message = text::one_line(message);
    match message.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.into_owned(),
    }
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
