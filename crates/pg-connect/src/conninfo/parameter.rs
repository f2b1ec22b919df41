//! libpq's connection parameters: which environment variable stands for each, and what is done with it here.
//!
//! Source: "Parameter Key Words" and "Environment Variables" in the libpq chapter of the documentation.

/// What is done with a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is followed, as libpq does.
    Used,
    /// It makes no difference here.
    Harmless,
    /// It requests something that is not there yet. Only these values, which ask for nothing, are accepted.
    Refused(&'static [&'static str]),
}

/// A connection parameter of libpq.
#[derive(Debug)]
pub(super) struct Parameter {
    /// Its key word in a connection string.
    pub(super) key: &'static str,
    /// The environment variable that stands for it; none where there is none.
    pub(super) variable: Option<&'static str>,
    /// What is done with it.
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

/// The parameter of that key word.
pub(super) fn find(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key == key)
}
