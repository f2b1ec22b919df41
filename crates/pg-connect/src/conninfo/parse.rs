//! libpq's connection strings, read and written: `host=db port=5432` and `postgresql://user@host:port/dbname?key=value`.

use std::iter::{Enumerate, Peekable};
use std::str::Chars;

use super::ConnInfo;
use super::parameter::{PARAMETERS, Rule};
use super::settings::{Origin, Secret, is_space};
use crate::error::ConnInfoError;

// `postgresql://user:password@host:port/dbname?key=value`: libpq's URIs.
// Source: "Connection URIs" in the libpq chapter. Errors never repeat a part of the URI before the query, because a
// password with an unescaped `/` or `@` would be in it.

pub(super) fn strip_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

/// Splits the result of [`strip_scheme`] into settings.
pub(super) fn uri(text: &str) -> Result<Vec<(String, String)>, ConnInfoError> {
    let mut settings = Vec::new();
    let (user_info, rest) = match text.split_once('@').filter(|(before, _)| !before.contains('/')) {
        Some((user_info, rest)) => (Some(user_info), rest),
        None => (None, text),
    };
    if let Some(user_info) = user_info {
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        push(&mut settings, "user", &decode(user)?);
        push(&mut settings, "password", &decode(password)?);
    }
    let (hosts, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    host_list(hosts, &mut settings)?;
    let (dbname, query) = path.split_once('?').unwrap_or((path, ""));
    push(&mut settings, "dbname", &decode(dbname.strip_prefix('/').unwrap_or(dbname))?);
    // As in libpq, the query may end with "&".
    let pairs = query.strip_suffix('&').filter(|rest| !rest.is_empty()).unwrap_or(query);
    for pair in pairs.split('&').filter(|_| !query.is_empty()) {
        let (key, value) =
            pair.split_once('=').ok_or_else(|| syntax("a setting after \"?\" in the URI has no \"=\""))?;
        if value.contains('=') {
            return Err(syntax(
                "a setting after \"?\" in the URI has two \"=\" (write %3D for it in a value)",
            ));
        }
        let (key, value) = (decode(key)?, decode(value)?);
        // JDBC's spelling, which libpq accepts too.
        if key == "ssl" && value == "true" {
            settings.push(("sslmode".to_owned(), "require".to_owned()));
        } else {
            settings.push((key, value));
        }
    }
    Ok(settings)
}

fn push(settings: &mut Vec<(String, String)>, key: &str, value: &str) {
    if !value.is_empty() {
        settings.push((key.to_owned(), value.to_owned()));
    }
}

/// `a:1,[::1],b` becomes `host=a,::1,b port=1,,`.
fn host_list(text: &str, settings: &mut Vec<(String, String)>) -> Result<(), ConnInfoError> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for part in text.split(',') {
        let (host, port) = split_port(part)?;
        let port = decode(port)?;
        if !port.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(syntax(
                "the port in the URI is not a number from 1 to 65535 (in a password write %3A for \":\", %2F for \"/\", %40 for \"@\")",
            ));
        }
        hosts.push(decode(host)?);
        ports.push(port);
    }
    if hosts.iter().any(|host| !host.is_empty()) || hosts.len() > 1 {
        settings.push(("host".to_owned(), hosts.join(",")));
    }
    if ports.iter().any(|port| !port.is_empty()) {
        settings.push(("port".to_owned(), ports.join(",")));
    }
    Ok(())
}

/// `host:port` or `[address]:port`; a missing port is empty.
fn split_port(place: &str) -> Result<(&str, &str), ConnInfoError> {
    let Some(inside) = place.strip_prefix('[') else {
        return Ok(place.split_once(':').unwrap_or((place, "")));
    };
    let (address, after) =
        inside.split_once(']').ok_or_else(|| syntax("an IPv6 address in the URI lacks its \"]\""))?;
    if address.is_empty() {
        return Err(syntax("the text between \"[\" and \"]\" in the URI is not an IPv6 address"));
    }
    match after.strip_prefix(':') {
        Some(port) => Ok((address, port)),
        None if after.is_empty() => Ok((address, "")),
        None => Err(syntax(
            "the \"]\" of an IPv6 address in the URI must be followed by \":\" and a port, or by nothing",
        )),
    }
}

fn syntax(message: &str) -> ConnInfoError {
    ConnInfoError::Syntax(message.to_owned())
}

/// Decodes percent encoding; `+` is not changed.
fn decode(text: &str) -> Result<String, ConnInfoError> {
    let bad = || {
        syntax("a \"%\" in the URI is not followed by two hexadecimal digits (a \"%\" itself is written %25)")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let value = match (digit(), digit()) {
            (Some(high), Some(low)) => u8::try_from(high * 16 + low).map_err(|_| bad())?,
            _ => return Err(bad()),
        };
        if value == 0 {
            return Err(syntax("%00 cannot be in a URI"));
        }
        bytes.push(value);
    }
    String::from_utf8(bytes).map_err(|_| syntax("the percent-encoded bytes of the URI are not UTF-8"))
}

// `host=db port=5432 options='-c x=y'`: libpq's key=value strings.
// Source: "Keyword/Value Connection Strings" in the libpq chapter. Errors give a position and never repeat the text,
// because a badly quoted password would be in it.

/// The rest of a string, each character with its position from 0.
type Rest<'a> = Peekable<Enumerate<Chars<'a>>>;

pub(super) fn key_values(text: &str) -> Result<Vec<(String, String)>, ConnInfoError> {
    let mut rest: Rest<'_> = text.chars().enumerate().peekable();
    let mut settings = Vec::new();
    loop {
        skip_space(&mut rest);
        let Some((start, _)) = rest.peek().copied() else { return Ok(settings) };
        settings.push(setting(&mut rest, start)?);
    }
}

fn skip_space(rest: &mut Rest<'_>) {
    while rest.next_if(|(_, c)| is_space(*c)).is_some() {}
}

fn setting(rest: &mut Rest<'_>, start: usize) -> Result<(String, String), ConnInfoError> {
    let mut key = String::new();
    while let Some((_, c)) = rest.next_if(|(_, c)| *c != '=' && !is_space(*c)) {
        key.push(c);
    }
    skip_space(rest);
    if rest.next().is_none_or(|(_, c)| c != '=') {
        return Err(ConnInfoError::Syntax(format!(
            "no \"=\" after the word at character {} (a value with spaces in it is written in single quotes)",
            start + 1
        )));
    }
    skip_space(rest);
    let value = match rest.next_if(|(_, c)| *c == '\'') {
        Some((start, _)) => quoted(rest, start)?,
        None => bare(rest),
    };
    Ok((key, value))
}

fn bare(rest: &mut Rest<'_>) -> String {
    let mut value = String::new();
    while let Some((_, c)) = rest.next_if(|(_, c)| !is_space(*c)) {
        if c == '\\' {
            value.extend(rest.next().map(|(_, c)| c));
        } else {
            value.push(c);
        }
    }
    value
}

fn quoted(rest: &mut Rest<'_>, start: usize) -> Result<String, ConnInfoError> {
    let mut value = String::new();
    loop {
        match rest.next() {
            Some((_, '\'')) => return Ok(value),
            Some((_, '\\')) => value.extend(rest.next().map(|(_, c)| c)),
            Some((_, c)) => value.push(c),
            None => {
                let problem = format!("the quote at character {} is not closed", start + 1);
                return Err(ConnInfoError::Syntax(problem));
            }
        }
    }
}

impl ConnInfo {
    /// A key=value string with all settings, **passwords included**: for a pipe, never for a command line or a log.
    /// Passwords from a password file are not included; that file is read again.
    #[must_use]
    pub fn to_key_value(&self) -> String {
        let mut settings = self.given.clone();
        for (key, value) in [
            ("user", Some(self.user.as_str())),
            ("dbname", Some(&self.dbname)),
            ("application_name", Some(&self.application_name)),
            ("sslmode", Some(self.tls.mode.word())),
            ("password", self.password.as_ref().map(|(password, _)| password.expose())),
            ("sslpassword", self.tls.key_password.as_ref().map(Secret::expose)),
            ("options", self.options.as_deref()),
        ] {
            if let Some(value) = value {
                settings.set(key, value.to_owned(), Origin::Target);
            }
        }
        for parameter in PARAMETERS {
            if let Rule::FixedDefault(value) = parameter.rule {
                settings.add(parameter.key, value.to_owned(), Origin::Target);
            }
        }
        let quoted = |value: &str| value.replace('\\', "\\\\").replace('\'', "\\'");
        // What a service set is among the others.
        let all = settings.each().filter(|(key, _)| !key.starts_with("service"));
        let all: Vec<_> = all.map(|(key, given)| format!("{key}='{}'", quoted(&given.value))).collect();
        all.join(" ")
    }

    /// The same with one more server setting for the sessions.
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: &str) -> Self {
        // The server splits the options at spaces that no backslash escapes (pg_split_opts in postinit.c).
        let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
        let before = self.options.take().map(|options| options + " ").unwrap_or_default();
        self.options = Some(format!("{before}-c {name}={value}"));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ConnInfo, Flags, Sources};

    fn parse(text: &str) -> ConnInfo {
        let sources = Sources {
            target: Some(text),
            flags: Flags::default(),
            flags_first: false,
            env: &|_| None,
            home: None,
            os_user: Some("me".to_owned()),
        };
        ConnInfo::resolve(&sources).unwrap()
    }

    #[test]
    fn a_written_connection_string_parses_to_the_same_settings() {
        for text in [
            "app",
            "host=/run/postgresql port=6000 user=ops",
            "host=a,b,/tmp hostaddr=10.0.0.1,::1, port=1,2,3 dbname='a b' connect_timeout=0 sslmode=require",
            "host=a,b sslmode=allow channel_binding=require target_session_attrs=read-write keepalives=0",
            "postgresql://u:p%20%27%5C@db/x?options=-c%20a%3Db&tcp_user_timeout=9&keepalives_count=7",
            "host='' password='it\\'s \\\\ so'",
            "host=a sslmode=verify-full sslrootcert='/a b/ca.pem' sslcert=me.crt sslkey=me.key sslpassword=x sslcrl=c sslcrldir=d",
            "host=a,b sslrootcert=system sslsni=0 sslcertmode=require ssl_min_protocol_version=tlsv1.3 sslnegotiation=direct",
            "host=a,b target_session_attrs=prefer-standby load_balance_hosts=random require_auth=!md5,!password",
        ] {
            let info = parse(text);
            let again = parse(&info.to_key_value());
            assert_eq!(format!("{info:?}"), format!("{again:?}"), "{text}");
            let secret =
                |info: &ConnInfo| info.password.as_ref().map(|(secret, _)| secret.expose().to_owned());
            assert_eq!(secret(&info), secret(&again), "{text}");
        }
    }

    #[test]
    fn a_setting_is_added_to_the_options() {
        let info = parse("host=db options='-c x=y'").with_setting("locktop.orphan_grace", "1.5 s");
        assert_eq!(info.options.as_deref(), Some("-c x=y -c locktop.orphan_grace=1.5\\ s"));
        assert_eq!(parse("db").with_setting("a", "b").options.as_deref(), Some("-c a=b"));
    }
}
