//! libpq's connection parameters: the environment variable for each, and whether it is supported here.
//!
//! Source: "Parameter Key Words" and "Environment Variables" in the libpq chapter of the documentation.

use tokio_postgres::config::ChannelBinding;

use super::settings::{is_space, word_of};

use Rule::{FixedDefault, Harmless, Refused, Used};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Supported, as in libpq.
    Used,
    /// The same, with a default that depends neither on another setting nor on this process: a child process may have
    /// other variables.
    FixedDefault(&'static str),
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
    row("host", "PGHOST", FixedDefault("")),
    row("hostaddr", "PGHOSTADDR", FixedDefault("")),
    row("port", "PGPORT", FixedDefault("")),
    row("dbname", "PGDATABASE", Used),
    row("user", "PGUSER", Used),
    row("password", "PGPASSWORD", Used),
    row("passfile", "PGPASSFILE", Used),
    row("service", "PGSERVICE", Used),
    row("servicefile", "PGSERVICEFILE", Used),
    row("options", "PGOPTIONS", Used),
    row("application_name", "PGAPPNAME", Used),
    row("fallback_application_name", "", Used),
    row("connect_timeout", "PGCONNECT_TIMEOUT", FixedDefault("10")),
    row("sslmode", "PGSSLMODE", Used),
    row("sslnegotiation", "PGSSLNEGOTIATION", Used),
    row("sslrootcert", "PGSSLROOTCERT", Used),
    row("sslcrl", "PGSSLCRL", Used),
    row("sslcrldir", "PGSSLCRLDIR", Used),
    row("sslcert", "PGSSLCERT", Used),
    row("sslkey", "PGSSLKEY", Used),
    row("sslpassword", "", Used),
    row("sslcertmode", "PGSSLCERTMODE", FixedDefault("allow")),
    row("sslsni", "PGSSLSNI", FixedDefault("1")),
    row("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Used),
    row("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Used),
    row("channel_binding", "PGCHANNELBINDING", FixedDefault("prefer")),
    row("require_auth", "PGREQUIREAUTH", Used),
    row("target_session_attrs", "PGTARGETSESSIONATTRS", FixedDefault("any")),
    row("load_balance_hosts", "PGLOADBALANCEHOSTS", FixedDefault("disable")),
    row("keepalives", "", FixedDefault("1")),
    row("keepalives_idle", "", FixedDefault("30")),
    row("keepalives_interval", "", FixedDefault("10")),
    row("keepalives_count", "", FixedDefault("3")),
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

// `require_auth`: the allowed authentication methods.
// Source: `require_auth` in "Parameter Key Words" of the libpq chapter, and `pqConnectOptions2` in
// `src/interfaces/libpq/fe-connect.c` for the syntax of the list.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// The server requested nothing, or only the client certificate.
    None,
    /// The password in clear text, as with the methods `password`, `ldap`, `pam` and `radius`.
    Password,
    Md5,
    /// A Kerberos ticket, by GSSAPI.
    Gss,
    /// The same on Windows.
    Sspi,
    /// SCRAM-SHA-256, with channel binding or without.
    Scram,
    /// A bearer token, from PostgreSQL 18.
    OAuth,
}

const METHODS: [(&str, AuthMethod); 7] = [
    ("none", AuthMethod::None),
    ("password", AuthMethod::Password),
    ("md5", AuthMethod::Md5),
    ("gss", AuthMethod::Gss),
    ("sspi", AuthMethod::Sspi),
    ("scram-sha-256", AuthMethod::Scram),
    ("oauth", AuthMethod::OAuth),
];

impl AuthMethod {
    pub(crate) fn word(self) -> &'static str {
        word_of(&METHODS, &self)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RequireAuth {
    /// The list as given; `None` allows everything.
    text: Option<String>,
    allowed: Vec<AuthMethod>,
}

impl RequireAuth {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut named = Vec::new();
        let mut negated = None;
        for word in text.split(',') {
            let word = word.trim_matches(is_space);
            let (not, word) = word.strip_prefix('!').map_or((false, word), |rest| (true, rest));
            if negated.is_some_and(|before| before != not) {
                return Err("either only methods, or only methods with \"!\" before them");
            }
            negated = Some(not);
            let method = METHODS.iter().find(|(name, _)| *name == word).map(|(_, method)| *method);
            let method = method
                .ok_or("password, md5, gss, sspi, scram-sha-256, oauth or none, separated by commas")?;
            if named.contains(&method) {
                return Err("each method once");
            }
            named.push(method);
        }
        let not = negated.unwrap_or_default();
        let allowed =
            METHODS.iter().map(|(_, method)| *method).filter(|method| named.contains(method) != not);
        Ok(Self { text: Some(text.to_owned()), allowed: allowed.collect() })
    }

    /// The list if no host was given.
    pub(super) fn unnamed() -> Self {
        let text = "scram-sha-256,none, which applies if no host is given (-h gives one),".to_owned();
        Self { text: Some(text), allowed: vec![AuthMethod::None, AuthMethod::Scram] }
    }

    pub(crate) fn allows(&self, method: AuthMethod) -> bool {
        self.text.is_none() || self.allowed.contains(&method)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_misspelled_word_finds_the_nearest_match() {
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

    #[test]
    fn lists_are_read() {
        use AuthMethod::{Md5, None, Password, Scram};
        let allowed = |text: &str| {
            let list = RequireAuth::parse(text).ok()?;
            Some([None, Password, Md5, Scram].map(|method| list.allows(method)))
        };
        for (text, expected) in [
            ("scram-sha-256", Some([false, false, false, true])),
            (" md5 ,none", Some([true, false, true, false])),
            ("!password,!md5", Some([true, false, false, true])),
            ("!none", Some([false, true, true, true])),
            ("md5,!none", Option::None),
            ("!md5,none", Option::None),
            ("md5,md5", Option::None),
            ("md5,", Option::None),
            ("", Option::None),
            ("SCRAM-SHA-256", Option::None),
            ("cert", Option::None),
        ] {
            assert_eq!(allowed(text), expected, "{text:?}");
        }
        assert!(RequireAuth::default().allows(Password));
    }
}
