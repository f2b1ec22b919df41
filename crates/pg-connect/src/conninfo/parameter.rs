//! libpq's connection parameters: the environment variable for each, and whether it is supported here.
//!
//! Source: "Parameter Key Words" and "Environment Variables" in the libpq chapter of the documentation.

use tokio_postgres::config::ChannelBinding;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Supported, as in libpq.
    Used,
    /// It makes no difference here.
    Harmless,
    /// It requests an unsupported feature. Only these values, which request nothing, are accepted.
    Refused(&'static [&'static str]),
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) key: &'static str,
    pub(super) variable: Option<&'static str>,
    pub(super) rule: Rule,
}

const fn used(key: &'static str, variable: &'static str) -> Parameter {
    Parameter { key, variable: Some(variable), rule: Rule::Used }
}

const fn plain(key: &'static str, rule: Rule) -> Parameter {
    Parameter { key, variable: None, rule }
}

const fn with(key: &'static str, variable: &'static str, rule: Rule) -> Parameter {
    Parameter { key, variable: Some(variable), rule }
}

/// Every parameter that libpq knows, up to PostgreSQL 18.
pub(super) const PARAMETERS: &[Parameter] = &[
    used("host", "PGHOST"),
    used("hostaddr", "PGHOSTADDR"),
    used("port", "PGPORT"),
    used("dbname", "PGDATABASE"),
    used("user", "PGUSER"),
    used("password", "PGPASSWORD"),
    used("passfile", "PGPASSFILE"),
    used("service", "PGSERVICE"),
    used("servicefile", "PGSERVICEFILE"),
    used("options", "PGOPTIONS"),
    used("application_name", "PGAPPNAME"),
    plain("fallback_application_name", Rule::Used),
    used("connect_timeout", "PGCONNECT_TIMEOUT"),
    used("sslmode", "PGSSLMODE"),
    used("sslnegotiation", "PGSSLNEGOTIATION"),
    used("sslrootcert", "PGSSLROOTCERT"),
    used("sslcrl", "PGSSLCRL"),
    used("sslcrldir", "PGSSLCRLDIR"),
    used("sslcert", "PGSSLCERT"),
    used("sslkey", "PGSSLKEY"),
    plain("sslpassword", Rule::Used),
    used("sslcertmode", "PGSSLCERTMODE"),
    used("sslsni", "PGSSLSNI"),
    used("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    used("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    used("channel_binding", "PGCHANNELBINDING"),
    used("require_auth", "PGREQUIREAUTH"),
    used("target_session_attrs", "PGTARGETSESSIONATTRS"),
    used("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    plain("keepalives", Rule::Used),
    plain("keepalives_idle", Rule::Used),
    plain("keepalives_interval", Rule::Used),
    plain("keepalives_count", Rule::Used),
    plain("tcp_user_timeout", Rule::Used),
    used("gssencmode", "PGGSSENCMODE"),
    with("client_encoding", "PGCLIENTENCODING", Rule::Harmless),
    with("krbsrvname", "PGKRBSRVNAME", Rule::Harmless),
    with("gsslib", "PGGSSLIB", Rule::Harmless),
    with("gssdelegation", "PGGSSDELEGATION", Rule::Harmless),
    with("sslcompression", "PGSSLCOMPRESSION", Rule::Harmless),
    with("max_protocol_version", "PGMAXPROTOCOLVERSION", Rule::Harmless),
    with("min_protocol_version", "PGMINPROTOCOLVERSION", Rule::Refused(&["3.0"])),
    plain("replication", Rule::Refused(&["0", "false", "off", "no"])),
    plain("sslkeylogfile", Rule::Refused(NONE)),
    with("requirepeer", "PGREQUIREPEER", Rule::Refused(NONE)),
    plain("scram_client_key", Rule::Refused(NONE)),
    plain("scram_server_key", Rule::Refused(NONE)),
    plain("oauth_issuer", Rule::Refused(NONE)),
    plain("oauth_client_id", Rule::Refused(NONE)),
    plain("oauth_client_secret", Rule::Refused(NONE)),
    plain("oauth_scope", Rule::Refused(NONE)),
];

const NONE: &[&str] = &[];

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
