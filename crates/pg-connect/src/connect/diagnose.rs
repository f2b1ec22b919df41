//! The meaning of an error, by SQLSTATE and by the stage of the connection.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use tokio_postgres::error::{DbError, Severity, SqlState};

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

/// In characters: a server's message may have any length.
const MESSAGE: usize = 300;

/// The server's message with its SQLSTATE, or the driver's error, in one sanitized line.
#[must_use]
pub fn message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => {
            let message = format!("{} (SQLSTATE {})", said(db.message()), said(db.code().code()));
            // "You might need to increase max_locks_per_transaction": only the hint shows which memory was exhausted.
            match db.hint().filter(|_| *db.code() == SqlState::OUT_OF_MEMORY) {
                Some(hint) => format!("{message}. {}", said(hint)),
                None => message,
            }
        }
        None if error.is_closed() => match crate::socket::last() {
            Some(refused) => format!("it was interrupted: {refused}"),
            None => "it ended without an error message".to_owned(),
        },
        None => match std::error::Error::source(error) {
            Some(cause) => said(&format!("{error}: {cause}")),
            None => said(&error.to_string()),
        },
    }
}

/// Text of a server or driver as one line of limited length.
fn said(text: &str) -> String {
    locktop_base::text::fit(&locktop_base::text::one_line_prefix(text, MESSAGE), MESSAGE).into_owned()
}

/// The server's error if it refused: the request is undone, and the session continues. `None` if the session has ended,
/// which the server may also report by an error (57P01 when an administrator terminates it): then the request may be
/// done or not.
#[must_use]
pub fn refusal(error: &tokio_postgres::Error) -> Option<&DbError> {
    let goes_on = |db: &&DbError| !is_last_word(db.parsed_severity(), db.severity(), db.code().code());
    error.as_db_error().filter(goes_on)
}

/// The localized severity may be in any language. The nonlocalized one is missing before PostgreSQL 9.6 and from some
/// poolers; then class 57P, operator intervention, counts as an end.
fn is_last_word(severity: Option<Severity>, word: &str, code: &str) -> bool {
    match severity {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(word, "FATAL" | "PANIC") || code.starts_with("57P"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_harmless_line_of_limited_length() {
        assert_eq!(said("no"), "no");
        assert_eq!(
            said("a\u{1b}[2Jb\nc\u{9b}d\u{202e}"),
            locktop_base::text::one_line("a\u{1b}[2Jb\nc\u{9b}d\u{202e}")
        );
        assert!(!said("a\u{1b}[2J\r\nb\u{7f}").contains(char::is_control));
        let long = said(&"x".repeat(100_000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (300, true));
    }

    #[test]
    fn a_server_of_any_language_is_understood() {
        for (severity, word, code, last) in [
            (Some(Severity::Fatal), "FATAL", "57P01", true),
            (Some(Severity::Fatal), "致命错误", "25P03", true),
            (Some(Severity::Panic), "PANIK", "XX000", true),
            (Some(Severity::Error), "ERROR", "57014", false),
            // A parallel worker was terminated: its leader only lost the statement.
            (Some(Severity::Error), "ERROR", "57P01", false),
            (None, "FATAL", "08P01", true),
            (None, "致命错误", "57P01", true),
            (None, "ERROR", "55P03", false),
        ] {
            assert_eq!(is_last_word(severity, word, code), last, "{severity:?} {word} {code}");
        }
    }
}
