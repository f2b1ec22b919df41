use std::net::{IpAddr, SocketAddr};

use super::super::auth_watch::AuthWatch;
use super::super::conninfo::{ConnInfo, Endpoint, Host, Negotiation, SslMode, socket};
use super::super::socket::Address;

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
                Address::Tcp(SocketAddr::new(address, self.endpoint.port), self.info.keepalives)
            }
        }
    }

    pub(super) fn config(&self, mode: SslMode) -> tokio_postgres::Config {
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

    fn password(&self) -> Option<&str> {
        let given = self.info.password.as_ref().map(|(secret, _)| secret.expose());
        given.or_else(|| self.endpoint.password.as_ref().map(|(secret, _)| secret.expose()))
    }
}
