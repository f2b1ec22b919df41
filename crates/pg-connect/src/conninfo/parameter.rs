//! libpq's connection parameters: the environment variable for each, and whether it is supported here.
//!
//! Source: "Parameter Key Words" and "Environment Variables" in the libpq chapter of the documentation.

use tokio_postgres::config::ChannelBinding;

use Rule::{Harmless, Refused, Used};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Supported, as in libpq.
    Used,
    /// It makes no difference here.
    Harmless,
    /// It requests an unsupported feature. Only these values, which request nothing, are accepted.
    Refused(&'static [&'static str]),
}

pub(super) struct Parameter {
    pub(super) key: &'static str,
    /// Its environment variable; empty if it has none.
    pub(super) variable: &'static str,
    pub(super) rule: Rule,
}

const fn row(key: &'static str, variable: &'static str, rule: Rule) -> Parameter {
    Parameter { key, variable, rule }
}

/// Every parameter that libpq knows, up to PostgreSQL 18.
pub(super) const PARAMETERS: &[Parameter] = &[
    row("host", "PGHOST", Used),
    row("hostaddr", "PGHOSTADDR", Used),
    row("port", "PGPORT", Used),
    row("dbname", "PGDATABASE", Used),
    row("user", "PGUSER", Used),
    row("password", "PGPASSWORD", Used),
    row("passfile", "PGPASSFILE", Used),
    row("service", "PGSERVICE", Used),
    row("servicefile", "PGSERVICEFILE", Used),
    row("options", "PGOPTIONS", Used),
    row("application_name", "PGAPPNAME", Used),
    row("fallback_application_name", "", Used),
    row("connect_timeout", "PGCONNECT_TIMEOUT", Used),
    row("sslmode", "PGSSLMODE", Used),
    row("sslnegotiation", "PGSSLNEGOTIATION", Used),
    row("sslrootcert", "PGSSLROOTCERT", Used),
    row("sslcrl", "PGSSLCRL", Used),
    row("sslcrldir", "PGSSLCRLDIR", Used),
    row("sslcert", "PGSSLCERT", Used),
    row("sslkey", "PGSSLKEY", Used),
    row("sslpassword", "", Used),
    row("sslcertmode", "PGSSLCERTMODE", Used),
    row("sslsni", "PGSSLSNI", Used),
    row("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Used),
    row("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Used),
    row("channel_binding", "PGCHANNELBINDING", Used),
    row("require_auth", "PGREQUIREAUTH", Used),
    row("target_session_attrs", "PGTARGETSESSIONATTRS", Used),
    row("load_balance_hosts", "PGLOADBALANCEHOSTS", Used),
    row("keepalives", "", Used),
    row("keepalives_idle", "", Used),
    row("keepalives_interval", "", Used),
    row("keepalives_count", "", Used),
    row("tcp_user_timeout", "", Used),
    row("gssencmode", "PGGSSENCMODE", Used),
    row("client_encoding", "PGCLIENTENCODING", Harmless),
    row("krbsrvname", "PGKRBSRVNAME", Harmless),
    row("gsslib", "PGGSSLIB", Harmless),
    row("gssdelegation", "PGGSSDELEGATION", Harmless),
    row("sslcompression", "PGSSLCOMPRESSION", Harmless),
    row("max_protocol_version", "PGMAXPROTOCOLVERSION", Harmless),
    row("min_protocol_version", "PGMINPROTOCOLVERSION", Refused(&["3.0"])),
    row("replication", "", Refused(&["0", "false", "off", "no"])),
    row("sslkeylogfile", "", Refused(&[])),
    row("requirepeer", "PGREQUIREPEER", Refused(&[])),
    row("scram_client_key", "", Refused(&[])),
    row("scram_server_key", "", Refused(&[])),
    row("oauth_issuer", "", Refused(&[])),
    row("oauth_client_id", "", Refused(&[])),
    row("oauth_client_secret", "", Refused(&[])),
    row("oauth_scope", "", Refused(&[])),
];

pub(super) const CHANNEL_BINDING: [(&str, ChannelBinding); 3] = [
    ("disable", ChannelBinding::Disable),
    ("prefer", ChannelBinding::Prefer),
    ("require", ChannelBinding::Require),
];

/// Whether the places are tried in random order.
pub(super) const LOAD_BALANCE: [(&str, bool); 2] = [("disable", false), ("random", true)];

pub(super) fn find(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key == key)
}

/// The parameter that an unknown one was probably meant to be.
pub(super) fn meant(key: &str) -> Option<&'static str> {
    nearest(key, PARAMETERS.iter().map(|parameter| parameter.key))
}

/// The candidate closest to `word`, if one is close enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether the two are equal, or differ by one letter: added, missing, replaced or swapped with its neighbour.
#[must_use]
pub fn is_nearly(written: &str, word: &str) -> bool {
    distance(written, word) <= 1
}

/// Number of insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment),
/// ignoring case and the difference between `-` and `_`.
fn distance(left: &str, right: &str) -> usize {
    let normal = |text: &str| text.to_lowercase().replace('-', "_");
    strsim::osa_distance(&normal(left), &normal(right))
}

#[cfg(test)]
mod tests {
    use super::{is_nearly, nearest};

    #[test]
    fn one_edit_is_near_and_two_are_not() {
        for (written, expected) in [
            ("recover", true),
            ("Recover", true),
            ("recvoer", true),
            ("recove", true),
            ("recoverr", true),
            ("rekover", true),
            ("rekofer", false),
            ("app", false),
            ("", false),
        ] {
            assert_eq!(is_nearly(written, "recover"), expected, "{written}");
        }
    }

    #[test]
    fn finds_what_was_meant() {
        let words = ["host", "port", "read_only", "refresh"];
        for (typed, meant) in [
            ("hsot", Some("host")),
            ("read-only", Some("read_only")),
            ("refrsh", Some("refresh")),
            ("Port", Some("port")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, words), meant, "{typed}");
        }
    }
}
