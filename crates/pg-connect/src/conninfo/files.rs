//! The files of libpq: the connection service file and the password file.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::parameter;
use super::settings::{Origin, Secret, Settings, Sources, is_space};
use crate::error::ConnInfoError;
use locktop_base::text;

// The connection service file: `[name]`, then the `key=value` lines of that service.
// Source: "The Connection Service File" in the libpq chapter, and `parseServiceInfo` in
// `src/interfaces/libpq/fe-connect.c`.

const NAME: &str = "pg_service.conf";

/// Directories of the system-wide file in builds of PostgreSQL: Debian's, Red Hat's, Homebrew's, and that of others.
/// libpq has one of them compiled in.
const SYSTEM: [&str; 4] = [
    "/etc/postgresql-common",
    "/etc/sysconfig/pgsql",
    "/opt/homebrew/etc/postgresql",
    "/usr/local/pgsql/etc",
];

/// The settings of a service from the user's file or, if it is not there, from the system's. `explicit` is the file
/// named by a setting.
pub(super) fn find(
    service: &str,
    explicit: Option<&str>,
    sources: &Sources<'_>,
) -> Result<Settings, ConnInfoError> {
    let files = files(explicit, sources);
    for file in &files {
        // A missing file is skipped; a permission error of `metadata` is reported by `read`.
        if !file.exists() {
            continue;
        }
        let text = std::fs::read(file)
            .map_err(|error| ConnInfoError::Service(format!("cannot read {}: {error}", file.display())))?;
        if let Some(settings) = parse(&String::from_utf8_lossy(&text), service, file)? {
            return Ok(settings);
        }
    }
    let looked: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    Err(ConnInfoError::Service(format!(
        "service \"{}\" is not in any of the service files: {}",
        text::one_line(service),
        looked.join(", ")
    )))
}

fn files(explicit: Option<&str>, sources: &Sources<'_>) -> Vec<PathBuf> {
    let of_user =
        explicit.map(PathBuf::from).or_else(|| Some(sources.home.as_ref()?.join(".pg_service.conf")));
    let system: Vec<PathBuf> = match (sources.env)("PGSYSCONFDIR") {
        Some(directory) => vec![PathBuf::from(directory)],
        None => SYSTEM.iter().map(PathBuf::from).collect(),
    };
    of_user.into_iter().chain(system.into_iter().map(|directory| directory.join(NAME))).collect()
}

/// The settings of one section; `None` if the file does not have it. The first line of a key counts.
fn parse(text: &str, service: &str, file: &Path) -> Result<Option<Settings>, ConnInfoError> {
    let origin: Arc<str> = format!("service \"{}\" in {}", text::one_line(service), file.display()).into();
    let mut found: Option<Settings> = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_matches(is_space);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            match found {
                Some(_) => break,
                None if name.strip_prefix(service).is_some_and(|rest| rest.starts_with(']')) => {
                    found = Some(Settings::default());
                }
                None => {}
            }
        } else if let Some(settings) = &mut found {
            let wrong =
                |problem: String| ConnInfoError::ServiceFile { file: file.to_owned(), line: at + 1, problem };
            let (key, value) = setting(line).map_err(wrong)?;
            settings.add(key, value.to_owned(), Origin::Service(Arc::clone(&origin)));
        }
    }
    Ok(found)
}

/// A line of a section. The value is everything after the `=`, quotes and spaces included. An invalid line is not
/// repeated: it may be the rest of a password.
fn setting(line: &str) -> Result<(&'static str, &str), String> {
    if line.starts_with("ldap") {
        return Err(
            "services from an LDAP server are not supported: write the settings into the file".to_owned()
        );
    }
    let (key, value) = line.split_once('=').ok_or_else(|| "a setting is key=value".to_owned())?;
    if key == "service" || key == "servicefile" {
        return Err("a service cannot name another one".to_owned());
    }
    match parameter::find(key) {
        Some(parameter) => Ok((parameter.key, value)),
        None if key.ends_with(char::is_whitespace) => {
            Err("no space is permitted before the \"=\"".to_owned())
        }
        // A text close to the name of a setting is not part of a password.
        None => Err(match parameter::meant(key) {
            Some(meant) => format!("unknown setting \"{}\": did you mean \"{meant}\"?", text::one_line(key)),
            None => "unknown setting".to_owned(),
        }),
    }
}

// The password file: one `host:port:database:user:password` per line; the first match counts.
// Source: "The Password File" in the libpq chapter. As in libpq, a file that others may read is not used; the reason
// is kept for the error if the server requests a password.

#[derive(Debug, Default)]
pub(super) struct PasswordFile {
    entries: Vec<Entry>,
    /// Why the file was not used.
    pub(super) complaint: Option<String>,
}

#[derive(Debug)]
struct Entry {
    /// Host, port, database, user; `None` is `*`.
    fields: [Option<String>; 4],
    password: Secret,
}

impl PasswordFile {
    /// Reads a file. A missing file is empty.
    pub(super) fn read(path: &Path) -> Self {
        let refused = |why: &str| Self {
            entries: Vec::new(),
            complaint: Some(format!("the password file {} was not used: {why}", path.display())),
        };
        let Ok(metadata) = std::fs::metadata(path) else { return Self::default() };
        if !metadata.is_file() {
            return refused("it is not a plain file");
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return refused("other users can read it: chmod 600");
        }
        match std::fs::read(path) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes)),
            Err(error) => refused(&error.to_string()),
        }
    }

    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self { entries: lines.filter_map(entry).collect(), complaint: None }
    }

    pub(super) fn find(&self, host: &str, port: u16, database: &str, user: &str) -> Option<Secret> {
        let port = port.to_string();
        let wanted = [host, &port, database, user];
        self.entries
            .iter()
            .find(|entry| {
                entry.fields.iter().zip(wanted).all(|(field, want)| field.as_ref().is_none_or(|f| f == want))
            })
            .map(|entry| entry.password.clone())
            // The first match counts, even without a password.
            .filter(|password| !password.expose().is_empty())
    }
}

fn entry(line: &str) -> Option<Entry> {
    let mut rest = line;
    let mut fields = [const { None }; 4];
    for slot in &mut fields {
        let (raw, tail) = split_field(rest)?;
        *slot = (raw != "*").then(|| unescape(raw));
        rest = tail;
    }
    // The password ends at the next colon, as in libpq, or at the end of the line.
    let password = split_field(rest).map_or(rest, |(password, _)| password);
    Some(Entry { fields, password: Secret::new(unescape(password)) })
}

/// The text before and after the first colon that no backslash escapes.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let colon = text.find(|c| {
        let ends = c == ':' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    Some((text.get(..colon)?, text.get(colon + 1..)?))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}
