//! `require_auth`: the allowed authentication methods.
//!
//! Source: `require_auth` in "Parameter Key Words" of the libpq chapter, and `pqConnectOptions2` in
//! `src/interfaces/libpq/fe-connect.c` for the syntax of the list.

use super::parse::is_space;
use super::settings::word_of;

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
