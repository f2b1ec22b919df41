use super::super::error::ConnInfoError;
use super::parameter::{self, PARAMETERS, Rule};
use super::settings::{Flags, Given, Origin, Settings, Sources};
use super::{key_value, service, uri};
use locktop_base::text;

/// Merges all sources; the stronger source comes first.
pub(super) fn gather(sources: &Sources<'_>) -> Result<Settings, ConnInfoError> {
    let target =
        sources.target.map_or_else(|| Ok(Settings::default()), |text| parse(text, Origin::Target))?;
    let (mut flags, named) = from_flags(&sources.flags)?;
    let mut all = named;
    if sources.flags_first {
        flags.fill(target);
        all.fill(flags);
    } else {
        all.fill(target);
        all.fill(flags);
    }
    let environment = from_environment(sources.env);
    let named = |key: &str| all.said(key).or_else(|| environment.said(key)).map(|given| given.value.clone());
    if let Some(service) = named("service") {
        let file = named("servicefile").filter(|file| !file.is_empty());
        all.fill(service::look_up(&service, file.as_deref(), sources)?);
    }
    all.fill(environment);
    // Without TLS, its other settings have no effect.
    let no_tls = all.get("sslmode").is_some_and(|mode| mode.value == "disable");
    for (key, given) in all.each().filter(|(key, _)| !(no_tls && key.starts_with("ssl"))) {
        refuse(key, given)?;
    }
    Ok(all)
}

/// Whether `text` is a connection string, not a plain name.
#[must_use]
pub fn is_connection_string(text: &str) -> bool {
    text.contains("://") || text.contains('=') || is_mistyped(text)
}

/// Whether `text` is a connection string that contains the password of the server or of a key.
#[must_use]
pub fn has_password(text: &str) -> bool {
    let settings = parse(text, Origin::Target).unwrap_or_default();
    ["password", "sslpassword"].iter().any(|key| settings.get(key).is_some())
}

/// Whether `text` is probably a URI with a mistake in its beginning: its text may be a password.
fn is_mistyped(text: &str) -> bool {
    let head = text.split(['=', ' ']).next().unwrap_or_default();
    head.contains(':') && text.contains('@')
}

/// Reads a URI, a key=value string or a database name.
fn parse(text: &str, origin: Origin) -> Result<Settings, ConnInfoError> {
    let mut settings = Settings::default();
    let pairs = if let Some(rest) = uri::strip_scheme(text) {
        uri::parse(rest)?
    } else if text.contains("://") || is_mistyped(text) {
        return Err(ConnInfoError::Syntax("a URI begins with postgresql:// or postgres://".to_owned()));
    } else if text.contains('=') {
        key_value::parse(text)?
    } else {
        settings.set("dbname", text.to_owned(), origin);
        return Ok(settings);
    };
    let mut after_password = false;
    for (key, value) in pairs {
        // The old spelling of sslmode, which libpq still accepts (`conninfo_storeval` in fe-connect.c).
        let (key, value) = match key.as_str() {
            "requiressl" if value.starts_with('1') => ("sslmode".to_owned(), "require".to_owned()),
            "requiressl" => ("sslmode".to_owned(), "prefer".to_owned()),
            _ => (key, value),
        };
        let Some(parameter) = parameter::find(&key) else {
            return Err(if after_password {
                // It may be the rest of a password with a space in it.
                ConnInfoError::Syntax(
                    "the text after the password is not a setting (a value with spaces in it is written in single quotes)"
                        .to_owned(),
                )
            } else {
                ConnInfoError::Unknown {
                    key: text::one_line(&key).into_owned(),
                    hint: super::nearest::nearest(&key, PARAMETERS.iter().map(|p| p.key)).map(str::to_owned),
                }
            });
        };
        after_password = matches!(parameter.key, "password" | "sslpassword");
        settings.set(parameter.key, value, origin.clone());
    }
    Ok(settings)
}

/// The flags, and separately the settings of a connection string in `-d`, which override the flags.
fn from_flags(flags: &Flags) -> Result<(Settings, Settings), ConnInfoError> {
    let mut settings = Settings::default();
    let mut set = |key, flag, value: &Option<String>| {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            settings.set(key, value.clone(), Origin::Flag(flag));
        }
    };
    set("host", "-h", &flags.host);
    set("port", "-p", &flags.port);
    set("user", "-U", &flags.user);
    match &flags.dbname {
        Some(text) if is_connection_string(text) => Ok((settings, parse(text, Origin::Flag("-d"))?)),
        dbname => {
            set("dbname", "-d", dbname);
            Ok((settings, Settings::default()))
        }
    }
}

fn from_environment(env: &dyn Fn(&str) -> Option<String>) -> Settings {
    let mut settings = Settings::default();
    for parameter in PARAMETERS {
        let Some(variable) = parameter.variable else { continue };
        if let Some(value) = env(variable) {
            settings.set(parameter.key, value, Origin::Variable(variable));
        }
    }
    // The old spelling of PGSSLMODE=require.
    let old = "PGREQUIRESSL";
    if settings.get("sslmode").is_none() && env(old).is_some_and(|value| value.starts_with('1')) {
        settings.set("sslmode", "require".to_owned(), Origin::Variable(old));
    }
    settings
}

/// Refuses a setting that requests an unsupported feature.
fn refuse(key: &'static str, given: &Given) -> Result<(), ConnInfoError> {
    match parameter::find(key).map(|parameter| parameter.rule) {
        Some(Rule::Refused(accepted))
            if !given.value.is_empty() && !accepted.contains(&given.value.as_str()) =>
        {
            let setting = if accepted.is_empty() {
                key.to_owned()
            } else {
                format!("{key}={}", text::one_line(&given.value))
            };
            Err(ConnInfoError::Unsupported { setting, origin: given.origin.to_string() })
        }
        _ => Ok(()),
    }
}
