//! Opening a connection.
//!
//! Hosts are tried in order, and the addresses of each; [`ConnInfo::connect_timeout`] limits every attempt from the
//! first packet to the end of the login. TLS is negotiated for each attempt as in libpq, and never used on a Unix
//! socket.

pub(crate) mod attempt;
mod listen;
pub(crate) mod session;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio_postgres::tls::TlsConnect;

use super::auth_watch::Watched;
use super::conninfo::{ConnInfo, Endpoint, Host, SessionAttrs, SslMode};
use super::error::{ConnectError, ConnectErrorKind as Kind};
use super::socket::Socket;
use super::tls::{Connector, Stage};
use attempt::{Attempt, Failure, within};
pub use listen::{Canceller, Listening, Notification, Notifications, Received, listen};
pub use session::{SearchPath, local_settings, pin, settings_on_own_path};

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    /// For sending statements; they are answered in the order of sending.
    pub client: tokio_postgres::Client,
    /// For cancelling the running statement, over a connection of its own.
    pub canceller: Canceller,
    /// The task that drives the connection. It ends, with the reason, when the connection does.
    pub driver: tokio::task::JoinHandle<Result<(), tokio_postgres::Error>>,
}

/// The place that a connection was made to, of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The host as given, or the directory of the socket.
    pub host: String,
    /// The port; for a socket, a part of its name.
    pub port: u16,
    /// The `sslmode` in effect: `require`, `verify-ca` or `verify-full`; `None` without TLS.
    pub tls: Option<&'static str>,
}

type Driver = tokio_postgres::Connection<Watched<Socket>, <Connector as TlsConnect<Watched<Socket>>>::Stream>;

/// A connection without a driver task yet.
struct Raw {
    client: tokio_postgres::Client,
    connection: Driver,
    canceller: Canceller,
    place: Place,
}

/// Connects.
///
/// # Errors
/// When the server cannot be reached, does not answer in time, or refuses.
pub async fn connect(info: &ConnInfo) -> Result<Connection, ConnectError> {
    Ok(connect_somewhere(info).await?.0)
}

/// Connects, and returns the place that it connected to.
///
/// # Errors
/// If no server can be reached, answers in time, or accepts the login.
pub async fn connect_somewhere(info: &ConnInfo) -> Result<(Connection, Place), ConnectError> {
    // The future of a handshake is large; boxed, those of the callers stay small.
    let Raw { client, connection, canceller, place } = Box::pin(reach(info)).await?;
    Ok((Connection { client, canceller, driver: tokio::spawn(connection) }, place))
}

/// In random order. The random seed of a new hasher is enough here.
fn shuffle<T>(places: &mut [T]) {
    places.sort_by_cached_key(|_| RandomState::new().build_hasher().finish());
}

async fn reach(info: &ConnInfo) -> Result<Raw, ConnectError> {
    let mut endpoints: Vec<&Endpoint> = info.endpoints.iter().collect();
    if info.shuffle {
        shuffle(&mut endpoints);
    }
    // All places are searched for a standby before any other server is accepted.
    let rounds: &[SessionAttrs] = match info.session {
        SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
        ref one => std::slice::from_ref(one),
    };
    let mut failures = Vec::new();
    for wanted in rounds {
        failures.clear();
        for endpoint in &endpoints {
            match to_endpoint(info, endpoint, *wanted).await {
                Ok(connection) => return Ok(connection),
                Err(error) if error.tries_next_host() => failures.push(error),
                Err(error) => return Err(error),
            }
        }
    }
    Err(ConnectError::of(failures))
}

async fn to_endpoint(
    info: &ConnInfo,
    endpoint: &Endpoint,
    wanted: SessionAttrs,
) -> Result<Raw, ConnectError> {
    let mut raw = to_host(info, endpoint).await?;
    let (kind, reason) = match within(info.connect_timeout, Box::pin(session::check(&mut raw, wanted))).await
    {
        Ok(Ok(())) => return Ok(raw),
        Ok(Err(reason)) => (Kind::WrongSession, reason),
        Err(seconds) => (Kind::Silent(seconds), String::new()),
    };
    Err(ConnectError::new(kind, endpoint.place(), reason))
}

async fn to_host(info: &ConnInfo, endpoint: &Endpoint) -> Result<Raw, ConnectError> {
    match (&endpoint.host, endpoint.address) {
        // As in libpq, an address takes precedence over a socket directory.
        (host, Some(address)) => to_addresses(info, endpoint, &host.text(), &[address]).await,
        (Host::Unix(directory), None) => to_socket(info, endpoint, directory).await,
        (Host::Local, None) => to_local(info, endpoint).await,
        (Host::Tcp(name), None) => to_name(info, endpoint, name).await,
    }
}

/// No host was given: the first usual directory with a socket for the port, else localhost. If any local user could
/// listen there, no password is revealed.
async fn to_local(info: &ConnInfo, endpoint: &Endpoint) -> Result<Raw, ConnectError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for directory in super::conninfo::SOCKET_DIRECTORIES.map(Path::new) {
        let Ok(real) = directory.canonicalize() else { continue };
        if super::conninfo::socket(&real, endpoint.port).exists() && !found.contains(&real) {
            found.push(real);
        }
    }
    // As in libpq, the error of a socket that does not work is reported, and no other place is tried.
    if let Some(directory) = found.first() {
        let unnamed = is_open_to_all(directory).then(|| info.unnamed());
        return to_socket(unnamed.as_ref().unwrap_or(info), endpoint, directory).await;
    }
    let info = &info.unnamed();
    match to_name(info, endpoint, "localhost").await {
        Err(error) if error.is_absence() => {
            let kind = Kind::NothingLocal { port: endpoint.port, localhost: Box::new(error) };
            Err(ConnectError::new(kind, endpoint.place(), ""))
        }
        done => done,
    }
}

/// Whether any local user may create a socket in a directory. Directories of packages (`/var/run/postgresql`) belong to
/// the server's role; a user who may write there controls the server anyway.
fn is_open_to_all(directory: &Path) -> bool {
    directory.metadata().map_or(true, |about| about.permissions().mode() & 0o002 != 0)
}

async fn to_socket(info: &ConnInfo, endpoint: &Endpoint, directory: &Path) -> Result<Raw, ConnectError> {
    let endpoint = &Endpoint { host: Host::Unix(directory.to_owned()), ..endpoint.clone() };
    let attempt = Attempt { info, endpoint, host: "", address: None };
    attempt.run(SslMode::Disable).await.map_err(|failure| failure.error)
}

async fn to_name(info: &ConnInfo, endpoint: &Endpoint, name: &str) -> Result<Raw, ConnectError> {
    let lookup = tokio::net::lookup_host((name, endpoint.port));
    let unknown = |reason| ConnectError::new(Kind::UnknownHost, name, reason);
    let addresses = within(info.connect_timeout, lookup)
        .await
        .map_err(|seconds| unknown(format!("no answer from the name service within {seconds} s")))?
        .map_err(|error| unknown(attempt::io(&error)))?;
    let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
    if info.shuffle {
        shuffle(&mut addresses);
    }
    to_addresses(info, endpoint, name, &addresses).await
}

/// Tries the addresses of one host in turn, until one accepts a connection.
async fn to_addresses(
    info: &ConnInfo,
    endpoint: &Endpoint,
    name: &str,
    addresses: &[IpAddr],
) -> Result<Raw, ConnectError> {
    // If only an address was given, there is no host name that a certificate could be for.
    let host =
        if name.is_empty() { addresses.first().map(ToString::to_string) } else { Some(name.to_owned()) };
    let endpoint = &Endpoint { host: Host::Tcp(host.unwrap_or_default()), ..endpoint.clone() };
    let mut last = None;
    for address in addresses {
        let attempt = Attempt { info, endpoint, host: name, address: Some(*address) };
        match with_tls_as_asked(&attempt).await {
            Ok(raw) => return Ok(raw),
            Err(failure) if failure.stage == Stage::Reaching => last = Some(failure.error),
            Err(failure) => return Err(failure.error),
        }
    }
    Err(last.unwrap_or_else(|| ConnectError::new(Kind::UnknownHost, name, "the name has no address")))
}

/// `prefer` retries without TLS if the handshake failed or the server refuses the login with TLS; `allow` does the
/// reverse. (`PQconnectPoll` in `src/interfaces/libpq/fe-connect.c`.)
async fn with_tls_as_asked(attempt: &Attempt<'_>) -> Result<Raw, Failure> {
    let mode = attempt.info.tls.mode;
    let first = match mode {
        SslMode::Allow => attempt.run(SslMode::Disable).await,
        mode => attempt.run(mode).await,
    };
    let Err(failure) = first else { return first };
    let not_allowed = matches!(failure.error.kind, Kind::NotAllowed(_));
    let second = match mode {
        SslMode::Prefer if failure.stage == Stage::Handshake && failure.is_tls() => SslMode::Disable,
        SslMode::Prefer if failure.stage == Stage::Encrypted && not_allowed => SslMode::Disable,
        SslMode::Allow if not_allowed => SslMode::Require,
        _ => return Err(failure),
    };
    match attempt.run(second).await {
        Err(again) if failure.is_tls() => Err(Failure {
            stage: again.stage,
            error: if again.error.needs_password() {
                again.error
            } else {
                ConnectError::of(vec![failure.error, again.error])
            },
        }),
        // Refused both ways: the first error is reported.
        Err(again) if matches!(again.error.kind, Kind::NotAllowed(_)) => Err(failure),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{DirBuilder, Permissions, set_permissions};

    use super::*;

    #[test]
    fn whether_anybody_may_sit_in_a_directory() {
        let place = tempfile::tempdir().unwrap();
        for (mode, expected) in [(0o777, true), (0o1777, true), (0o2775, false), (0o755, false)] {
            let directory = place.path().join(format!("{mode:o}"));
            DirBuilder::new().create(&directory).unwrap();
            set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_open_to_all(&directory), expected, "{mode:o}");
        }
        assert!(is_open_to_all(&place.path().join("gone")), "in doubt, it is");
    }
}
