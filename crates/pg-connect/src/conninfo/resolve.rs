use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::config::ChannelBinding;

use super::super::error::ConnInfoError;
use super::super::secret::{PasswordOrigin, Secret};
use super::endpoint::{Endpoint, Host};
use super::gather::gather;
use super::parameter::{CHANNEL_BINDING, LOAD_BALANCE};
use super::password_file::PasswordFile;
use super::require_auth::RequireAuth;
use super::settings::{Given, Origin, Settings, Sources, choice, invalid, unsupported};
use super::tls_options::TlsOptions;
use super::{ConnInfo, DEFAULT_CONNECT_TIMEOUT, Keepalives, SessionAttrs};

const DEFAULT_PORT: u16 = 5432;

pub(super) fn resolve(sources: &Sources<'_>) -> Result<ConnInfo, ConnInfoError> {
    let settings = gather(sources)?;
    gss_encryption(&settings)?;
    let text = |key| settings.get(key).map(|given| given.value.clone());
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
            .said("application_name")
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
    };
    if info.password.is_none() {
        look_up_passwords(&mut info, text("passfile"), sources);
    }
    Ok(info)
}

fn look_up_passwords(info: &mut ConnInfo, passfile: Option<String>, sources: &Sources<'_>) {
    let default = || sources.home.as_ref().map(|home| home.join(".pgpass"));
    let Some(path) = passfile.map(PathBuf::from).or_else(default) else { return };
    let file = PasswordFile::read(&path);
    for endpoint in &mut info.endpoints {
        let host = match (&endpoint.host, endpoint.address) {
            (Host::Local, Some(address)) => address.to_string(),
            _ => endpoint.password_host(),
        };
        endpoint.password =
            file.find(&host, endpoint.port, &info.dbname, &info.user).map(|secret| (secret, path.clone()));
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
    let Some(Given { value, .. }) = settings.said(key) else { return Ok(None) };
    let number: i32 = value.trim().parse().map_err(|_| invalid(settings, key, value, "a whole number"))?;
    Ok(u32::try_from(number).ok().filter(|number| *number > 0))
}

fn connect_timeout(settings: &Settings) -> Result<Option<Duration>, ConnInfoError> {
    let key = "connect_timeout";
    if settings.said(key).is_none() {
        return Ok(Some(DEFAULT_CONNECT_TIMEOUT));
    }
    // An explicit zero is no limit, as in libpq.
    Ok(number(settings, key)?.map(|seconds| Duration::from_secs(seconds.into())))
}

/// A monitor has to notice within a minute that its server is unreachable, not after the system's two hours.
fn keepalives(settings: &Settings) -> Result<Keepalives, ConnInfoError> {
    let seconds =
        |key, default: u64| Ok(Duration::from_secs(number(settings, key)?.map_or(default, u64::from)));
    let on = match settings.said("keepalives") {
        Some(_) => number(settings, "keepalives")?.is_some(),
        None => true,
    };
    Ok(Keepalives {
        on,
        idle: seconds("keepalives_idle", 30)?,
        interval: seconds("keepalives_interval", 10)?,
        count: number(settings, "keepalives_count")?.unwrap_or(3),
        user_timeout: number(settings, "tcp_user_timeout")?
            .map(|milliseconds| Duration::from_millis(milliseconds.into())),
    })
}

/// The name of this program, as the server keeps it: at most 63 bytes (`NAMEDATALEN`).
fn program() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from).unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.chars().filter(char::is_ascii_graphic).take(63).collect()
}
