//! The password file: one `host:port:database:user:password` per line; the first match counts.
//!
//! Source: "The Password File" in the libpq chapter. As in libpq, a file that others may read is not used; the reason
//! is kept for the error if the server requests a password.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::secret::Secret;

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
