//! The meaning of an error, by SQLSTATE and by the stage of the connection.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use tokio_postgres::error::{DbError, SqlState};

use crate::auth_watch::{AuthWatch, Refused};
use crate::conninfo::{ConnInfo, Endpoint, Host, Negotiation, PasswordOrigin, Secret, SslMode, socket};
use crate::error::ConnectError;
use crate::socket::Address;
use crate::tls::{Stage, TlsError};
use locktop_base::text;

const MESSAGE_CHARS: usize = 300;

pub(super) fn diagnose(attempt: &Attempt<'_>, stage: Stage, error: &tokio_postgres::Error) -> ConnectError {
    if let Some(error) = error.as_db_error() {
        return from_server(attempt, error);
    }
    let place = attempt.place.clone();
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let io_error = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match (stage, io_error) {
        (Stage::Handshake, Some(error)) => return tls(place, TlsError::of_handshake(error)),
        (Stage::Handshake, None) => return ConnectError::TlsFailed { place, reason: line(&cause) },
        (_, Some(error)) => return broken(attempt, error),
        (_, None) => {}
    }
    // These have no kind to match on: the texts are the driver's own.
    match cause.as_str() {
        "password missing" => ConnectError::NoPassword {
            place,
            user: line(&attempt.info.user),
            note: attempt.info.password_note.clone(),
        },
        "server does not support TLS" => {
            ConnectError::TlsNotOffered { place, mode: attempt.info.tls.mode.word() }
        }
        _ if error.is_closed() => {
            ConnectError::Closed { place, reason: "it closed the connection during login".to_owned() }
        }
        "" => ConnectError::Other(format!("{place}: {error}")),
        cause => ConnectError::Authentication {
            place,
            user: line(&attempt.info.user),
            reason: format!("{error}: {}", line(cause)),
        },
    }
}

/// An error of TLS; a key that needs a password is a separate error, for a prompt.
fn tls(place: String, error: TlsError) -> ConnectError {
    match error {
        TlsError::EncryptedKey { file } => ConnectError::KeyPassword { place, file },
        error => ConnectError::TlsFailed { place, reason: line(&error.to_string()) },
    }
}

/// The stream was closed by the other side, or here.
fn broken(attempt: &Attempt<'_>, error: &io::Error) -> ConnectError {
    let place = attempt.place.clone();
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref()) {
        Some(Refused::Auth(method)) => {
            let wanted = line(attempt.info.require_auth.text().unwrap_or_default());
            return ConnectError::AuthNotAllowed { place, method: method.word(), wanted };
        }
        Some(Refused::Size(size)) => return ConnectError::BrokenOff { place, reason: size.to_string() },
        None => {}
    }
    // With TLS 1.3 the server reports only now whether it accepts the client certificate.
    if inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some() {
        return tls(place, TlsError::of_handshake(error));
    }
    ConnectError::Closed { place, reason: io(error) }
}

fn from_server(attempt: &Attempt<'_>, error: &DbError) -> ConnectError {
    let (place, user) = (attempt.place.clone(), line(&attempt.info.user));
    let message = line(error.message());
    let code = error.code();
    if *code == SqlState::INVALID_PASSWORD {
        ConnectError::WrongPassword {
            place,
            user,
            origin: attempt.password().map(|(_, origin)| origin.clone()),
            message,
        }
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        ConnectError::NoDatabase { place, database: line(&attempt.info.dbname), message }
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        ConnectError::TooManyConnections { place, message }
    } else if *code == SqlState::CANNOT_CONNECT_NOW {
        ConnectError::NotNow { place, message }
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        // One SQLSTATE for several errors; the server function that raised it tells them apart in any language.
        match error.routine() {
            Some("InitializeSessionUserId") => ConnectError::NoRole { place, user, message },
            _ => ConnectError::NotAllowed { place, user, message },
        }
    } else {
        ConnectError::Rejected { place, sqlstate: line(code.code()), message }
    }
}

pub(super) fn unreachable(attempt: &Attempt<'_>, error: &io::Error) -> ConnectError {
    let port = attempt.endpoint.port;
    if let Host::Unix(directory) = &attempt.endpoint.host {
        let path = socket(directory, port);
        return match error.kind() {
            ErrorKind::NotFound => ConnectError::NoSocket { path },
            ErrorKind::PermissionDenied => ConnectError::SocketForbidden { path },
            ErrorKind::ConnectionRefused => ConnectError::DeadSocket { path },
            _ => ConnectError::Unreachable { place: attempt.place.clone(), reason: io(error) },
        };
    }
    let place = attempt.place.clone();
    match error.kind() {
        ErrorKind::ConnectionRefused => ConnectError::Refused { place, host: attempt.host.to_owned(), port },
        _ => ConnectError::Unreachable { place, reason: io(error) },
    }
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

pub(super) struct Attempt<'a> {
    pub(super) info: &'a ConnInfo,
    pub(super) endpoint: &'a Endpoint,
    /// The endpoint, for messages.
    pub(super) place: String,
    /// Host name; empty for a socket.
    pub(super) host: &'a str,
    /// `None` for a socket.
    pub(super) address: Option<IpAddr>,
}

impl Attempt<'_> {
    /// With TLS the messages are inside it, and watched there.
    pub(super) fn watch(&self, mode: SslMode) -> AuthWatch {
        let tls = mode > SslMode::Allow;
        match self.info.tls.negotiation {
            Negotiation::Direct if tls => AuthWatch::none(),
            _ => AuthWatch::new(&self.info.require_auth, tls),
        }
    }

    /// The address to connect to; localhost for a host without one.
    pub(super) fn to(&self) -> Address {
        match (&self.endpoint.host, self.address) {
            (Host::Unix(directory), _) => Address::Unix(socket(directory, self.endpoint.port)),
            (_, address) => {
                let address = address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
                Address::Tcp(SocketAddr::new(address, self.endpoint.port), self.info.keepalives.clone())
            }
        }
    }

    pub(super) fn config(&self, mode: SslMode) -> tokio_postgres::Config {
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

    fn password(&self) -> Option<&(Secret, PasswordOrigin)> {
        self.info.password.as_ref().or(self.endpoint.password.as_ref())
    }
}
