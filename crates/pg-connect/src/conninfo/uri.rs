//! `postgresql://user:password@host:port/dbname?key=value`: libpq's URIs.
//!
//! Source: "Connection URIs" in the libpq chapter. Errors never repeat a part of the URI before the query, because a
//! password with an unescaped `/` or `@` would be in it.

use super::super::error::ConnInfoError;

pub(super) fn strip_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"))
}

/// Splits the result of [`strip_scheme`] into settings.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, ConnInfoError> {
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
