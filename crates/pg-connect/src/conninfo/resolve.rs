use std::path::PathBuf;
use std::time::Duration;

use socket2::TcpKeepalive;
use tokio_postgres::config::ChannelBinding;

use super::files::PasswordFile;
use super::parameter::{self, CHANNEL_BINDING, LOAD_BALANCE, PARAMETERS, RequireAuth, Rule};
use super::settings::{
    Flags, Given, Origin, PasswordOrigin, Secret, Settings, Sources, choice, invalid, unsupported,
};
use super::tls_options::TlsOptions;
use super::{ConnInfo, DEFAULT_CONNECT_TIMEOUT, Endpoint, Host, Keepalives, SessionAttrs, files, parse};
use crate::error::ConnInfoError;
use locktop_base::text;

const DEFAULT_PORT: u16 = 5432;

pub(super) fn resolve(sources: &Sources<'_>) -> Result<ConnInfo, ConnInfoError> {
    let settings = gather(sources)?;
    gss_encryption(&settings)?;
    let text = |key| settings.text(key);
    let user = text("user").or_else(|| sources.os_user.clone()).ok_or_else(|| {
        ConnInfoError::Other(
            "no user name given, and this system has no name for this user: use -U".to_owned(),
        )
    })?;
    let dbname = text("dbname").unwrap_or_else(|| user.clone());
    let password = settings.get("password").map(|given| {
        let origin = match &given.origin {
            Origin::Variable(_) => PasswordOrigin::Environment,
            Origin::Target | Origin::Flag(_) => PasswordOrigin::Target,
            Origin::Service(_) => PasswordOrigin::Service,
        };
        (Secret::new(given.value.clone()), origin)
    });
    let mut info = ConnInfo {
        endpoints: endpoints(&settings)?,
        user,
        dbname,
        password,
        password_note: None,
        options: text("options"),
        application_name: settings
            .given("application_name")
            .map(|given| given.value.clone())
            .or_else(|| text("fallback_application_name"))
            .unwrap_or_else(program),
        tls: TlsOptions::resolve(&settings, sources)?,
        require_auth: require_auth(&settings)?,
        channel_binding: choice(&settings, "channel_binding", ChannelBinding::Prefer, &CHANNEL_BINDING)?,
        session: choice(&settings, "target_session_attrs", SessionAttrs::Any, &SessionAttrs::WORDS)?,
        shuffle: choice(&settings, "load_balance_hosts", false, &LOAD_BALANCE)?,
        keepalives: keepalives(&settings)?,
        connect_timeout: connect_timeout(&settings)?,
        given: settings,
    };
    if info.password.is_none() {
        let passfile = info.given.text("passfile");
        find_passwords(&mut info, passfile, sources);
    }
    Ok(info)
}

fn find_passwords(info: &mut ConnInfo, passfile: Option<String>, sources: &Sources<'_>) {
    let default = || sources.home.as_ref().map(|home| home.join(".pgpass"));
    let Some(path) = passfile.map(PathBuf::from).or_else(default) else { return };
    let file = PasswordFile::read(&path);
    for endpoint in &mut info.endpoints {
        let host = match (&endpoint.host, endpoint.address) {
            (Host::Local, Some(address)) => address.to_string(),
            _ => endpoint.password_host(),
        };
        let found = file.find(&host, endpoint.port, &info.dbname, &info.user);
        endpoint.password = found.map(|secret| (secret, PasswordOrigin::File(path.clone())));
    }
    info.password_note = file.complaint;
}

/// Hosts, addresses and ports: lists of the same length, or one port for all.
fn endpoints(settings: &Settings) -> Result<Vec<Endpoint>, ConnInfoError> {
    let list = |key: &str| {
        settings.get(key).map(|given| given.value.split(',').collect::<Vec<_>>()).unwrap_or_default()
    };
    let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = hosts.len().max(addresses.len()).max(1);
    for (what, given) in [("host", hosts.len()), ("hostaddr", addresses.len()), ("port", ports.len())] {
        let fits = given == 0 || given == count || (what == "port" && given == 1);
        if !fits {
            return Err(ConnInfoError::Syntax(format!(
                "{given} values for {what} and {count} places to connect to: give one for each"
            )));
        }
    }
    (0..count)
        .map(|index| {
            let host = host(hosts.get(index).copied().unwrap_or(""), settings)?;
            let address = match addresses.get(index).copied().unwrap_or("") {
                "" => None,
                text => Some(
                    text.parse()
                        .map_err(|_| invalid(settings, "hostaddr", text, "a numeric IPv4 or IPv6 address"))?,
                ),
            };
            let port = match ports.get(index).or(ports.first()).copied().unwrap_or("") {
                "" => DEFAULT_PORT,
                text => text
                    .trim()
                    .parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or_else(|| invalid(settings, "port", text, "a number from 1 to 65535"))?,
            };
            Ok(Endpoint { host, address, port, password: None })
        })
        .collect()
}

fn host(text: &str, settings: &Settings) -> Result<Host, ConnInfoError> {
    match text.chars().next() {
        None => Ok(Host::Local),
        Some('/') => Ok(Host::Unix(PathBuf::from(text))),
        Some('@') => {
            Err(invalid(settings, "host", text, "a host name, an address or the directory of a socket"))
        }
        Some(_) => Ok(Host::Tcp(text.to_owned())),
    }
}

fn require_auth(settings: &Settings) -> Result<RequireAuth, ConnInfoError> {
    let Some(Given { value, .. }) = settings.get("require_auth") else { return Ok(RequireAuth::default()) };
    RequireAuth::parse(value).map_err(|expected| invalid(settings, "require_auth", value, expected))
}

/// GSSAPI encryption is not supported: a setting that requires it is refused.
fn gss_encryption(settings: &Settings) -> Result<(), ConnInfoError> {
    let key = "gssencmode";
    let wanted = choice(settings, key, ChannelBinding::Prefer, &CHANNEL_BINDING)?;
    match settings.get(key) {
        // The words are those of channel_binding.
        Some(given) if wanted == ChannelBinding::Require => {
            Err(unsupported(format!("{key}=require"), &given.origin))
        }
        _ => Ok(()),
    }
}

/// A whole number; `None` for libpq's default: missing, zero or negative.
fn number(settings: &Settings, key: &'static str) -> Result<Option<u32>, ConnInfoError> {
    let Some(Given { value, .. }) = settings.given(key) else { return Ok(None) };
    let number: i32 = value.trim().parse().map_err(|_| invalid(settings, key, value, "a whole number"))?;
    Ok(u32::try_from(number).ok().filter(|number| *number > 0))
}

fn connect_timeout(settings: &Settings) -> Result<Option<Duration>, ConnInfoError> {
    let key = "connect_timeout";
    if settings.given(key).is_none() {
        return Ok(Some(DEFAULT_CONNECT_TIMEOUT));
    }
    // An explicit zero is no limit, as in libpq.
    Ok(number(settings, key)?.map(|seconds| Duration::from_secs(seconds.into())))
}

/// A monitor has to notice within a minute that its server is unreachable, not after the system's two hours.
fn keepalives(settings: &Settings) -> Result<Keepalives, ConnInfoError> {
    let are_off = settings.given("keepalives").is_some() && number(settings, "keepalives")?.is_none();
    let seconds =
        |key, default: u64| Ok(Duration::from_secs(number(settings, key)?.map_or(default, u64::from)));
    let probes = TcpKeepalive::new()
        .with_time(seconds("keepalives_idle", 30)?)
        .with_interval(seconds("keepalives_interval", 10)?)
        .with_retries(number(settings, "keepalives_count")?.unwrap_or(3));
    let user_timeout = number(settings, "tcp_user_timeout")?;
    Ok(Keepalives {
        probes: (!are_off).then_some(probes),
        user_timeout: user_timeout.map(|milliseconds| Duration::from_millis(milliseconds.into())),
    })
}

/// The name of this program, as the server keeps it: at most 63 bytes (`NAMEDATALEN`).
fn program() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from).unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.chars().filter(char::is_ascii_graphic).take(63).collect()
}

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
    let named =
        |key: &str| all.given(key).or_else(|| environment.given(key)).map(|given| given.value.clone());
    if let Some(service) = named("service") {
        let file = named("servicefile").filter(|file| !file.is_empty());
        all.fill(files::find(&service, file.as_deref(), sources)?);
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
    let pairs = if let Some(rest) = parse::strip_scheme(text) {
        parse::uri(rest)?
    } else if text.contains("://") || is_mistyped(text) {
        return Err(ConnInfoError::Syntax("a URI begins with postgresql:// or postgres://".to_owned()));
    } else if text.contains('=') {
        parse::key_values(text)?
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
                    hint: parameter::meant(&key).map(str::to_owned),
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
        if !parameter.variable.is_empty()
            && let Some(value) = env(parameter.variable)
        {
            settings.set(parameter.key, value, Origin::Variable(parameter.variable));
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
            let value = text::one_line(&given.value);
            let setting = if accepted.is_empty() { key.to_owned() } else { format!("{key}={value}") };
            Err(unsupported(setting, &given.origin))
        }
        _ => Ok(()),
    }
}
