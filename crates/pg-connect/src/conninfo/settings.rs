use std::path::PathBuf;
use std::sync::Arc;

use locktop_base::text;

/// The default directories of sockets: Debian's and Red Hat's (often the same), then that of PostgreSQL's own builds.
pub(crate) const SOCKET_DIRECTORIES: [&str; 3] = ["/var/run/postgresql", "/run/postgresql", "/tmp"];

/// A connection string, flag or variable that is invalid or not supported. It never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnInfoError {
    /// The string is neither a URI nor a list of key=value; with the problem.
    #[error("the connection string cannot be read: {0}")]
    Syntax(String),
    /// A keyword that libpq does not have.
    #[error("unknown setting \"{key}\" in the connection string{}", did_you_mean(.hint.as_deref()))]
    Unknown {
        /// The keyword as written.
        key: String,
        /// The keyword that was probably meant; `None` if no other is similar.
        hint: Option<String>,
    },
    /// An invalid value of a keyword.
    #[error("{key} is \"{value}\" (from {origin}): expected {expected}")]
    Invalid {
        /// The keyword, as in libpq.
        key: &'static str,
        /// The value as given, in one line.
        value: String,
        /// Its source: the connection string, a flag, an environment variable, or a service file.
        origin: String,
        /// The accepted values, in words.
        expected: String,
    },
    /// A service that is in no service file, or whose file cannot be read.
    #[error("{0}")]
    Service(String),
    /// An invalid line of a service file. It is not repeated: it may be a password.
    #[error("{}, line {line}: {problem}", .file.display())]
    ServiceFile {
        /// The service file.
        file: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The problem with the line.
        problem: String,
    },
    /// A libpq feature that is not supported: refused, because ignoring it would weaken the request.
    #[error("{setting} (from {origin}) is not supported: remove it")]
    Unsupported {
        /// The keyword, or `key=value` if other values of it are accepted.
        setting: String,
        /// Its source: the connection string, a flag, an environment variable, or a service file.
        origin: String,
    },
    /// The system has no name for the current user, and none was given.
    #[error("{0}")]
    Other(String),
}

fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|hint| format!(": did you mean \"{hint}\"?")).unwrap_or_default()
}

/// A password. `Debug` shows `***`, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// `password` as it will be sent.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The plain password, for the code that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The source of a password, named if the server rejects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordOrigin {
    /// The connection string or the config file.
    Target,
    /// The environment variable `PGPASSWORD`.
    Environment,
    /// The section of a service file (`service=`).
    Service,
    /// This password file (`passfile`, `PGPASSFILE` or `~/.pgpass`).
    File(std::path::PathBuf),
    /// The prompt of the terminal.
    Prompt,
}

impl std::fmt::Display for PasswordOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Target => f.write_str("the connection string"),
            Self::Environment => f.write_str("PGPASSWORD"),
            Self::Service => f.write_str("the service file"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Prompt => f.write_str("the prompt"),
        }
    }
}

#[derive(Clone)]
pub(super) struct Given {
    pub(super) value: String,
    pub(super) origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Target,
    Flag(&'static str),
    Variable(&'static str),
    /// A section of a service file, with the file.
    Service(Arc<str>),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Target => f.write_str("the connection string"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => f.write_str(name),
            Self::Service(which) => f.write_str(which),
        }
    }
}

/// The settings of one source or, merged, of all.
#[derive(Clone, Default)]
pub(super) struct Settings(Vec<(&'static str, Given)>);

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // There may be passwords in it.
        f.write_str("Settings")
    }
}

impl Settings {
    /// The value of `key`, if it is not empty: an empty value requests the default.
    pub(super) fn get(&self, key: &str) -> Option<&Given> {
        self.given(key).filter(|given| !given.value.is_empty())
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(|given| given.value.clone())
    }

    /// The same, even if empty: some settings have no default for an empty value.
    pub(super) fn given(&self, key: &str) -> Option<&Given> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, given)| given)
    }

    pub(super) fn set(&mut self, key: &'static str, value: String, origin: Origin) {
        self.0.retain(|(name, _)| *name != key);
        self.0.push((key, Given { value, origin }));
    }

    /// Adds it, unless it is already set.
    pub(super) fn add(&mut self, key: &'static str, value: String, origin: Origin) {
        if !self.0.iter().any(|(name, _)| *name == key) {
            self.0.push((key, Given { value, origin }));
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, &Given)> {
        self.0.iter().map(|(key, given)| (*key, given))
    }

    /// Adds the settings of `weaker` that are not set yet.
    pub(super) fn fill(&mut self, weaker: Self) {
        for (key, given) in weaker.0 {
            self.add(key, given.value, given.origin);
        }
    }
}

pub(super) fn invalid(
    settings: &Settings,
    key: &'static str,
    value: &str,
    expected: impl Into<String>,
) -> ConnInfoError {
    let origin = settings.given(key).map_or(Origin::Target, |given| given.origin.clone());
    ConnInfoError::Invalid {
        key,
        value: text::one_line(value).into_owned(),
        origin: origin.to_string(),
        expected: expected.into(),
    }
}

/// C's `isspace`: a space of another script does not end a value.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// The words of a parameter, with what each means.
pub(super) type Words<T> = [(&'static str, T)];

/// The value of `key` among these; a missing one is the default.
pub(super) fn choice<T: Copy>(
    settings: &Settings,
    key: &'static str,
    default: T,
    words: &Words<T>,
) -> Result<T, ConnInfoError> {
    let Some(Given { value, .. }) = settings.given(key) else { return Ok(default) };
    let found = words.iter().find(|(word, _)| word == value).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let mut expected: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let last = expected.pop().unwrap_or_default();
        invalid(settings, key, value, format!("{} or {last}", expected.join(", ")))
    })
}

pub(super) fn word_of<T: PartialEq>(words: &Words<T>, value: &T) -> &'static str {
    words.iter().find(|(_, choice)| choice == value).map_or("", |(word, _)| word)
}

pub(super) fn unsupported(setting: String, origin: &Origin) -> ConnInfoError {
    ConnInfoError::Unsupported { setting, origin: origin.to_string() }
}

/// The values of `-h -p -U -d`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-h`: one or several hosts, separated by commas, or the directory of a socket; `None` without the flag.
    pub host: Option<String>,
    /// `-p`: one port, or one for each host; `None` without the flag.
    pub port: Option<String>,
    /// `-U`: the role to log in as; `None` without the flag.
    pub user: Option<String>,
    /// `-d`: a database name, a URI or a key=value string; `None` without the flag.
    pub dbname: Option<String>,
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The database may be a connection string, with a password in it.
        let Self { host, port, user, dbname: _ } = self;
        f.debug_struct("Flags")
            .field("host", host)
            .field("port", port)
            .field("user", user)
            .finish_non_exhaustive()
    }
}

/// All sources of connection settings. The first one wins: the target, the flags, the service named by them or by the
/// environment, the environment, the defaults. As in psql, a flag does not override a connection string, but flags do
/// override a target that was looked up by name (`flags_first`).
pub struct Sources<'a> {
    /// A URI, a key=value string or a database name.
    pub target: Option<&'a str>,
    /// The flags of the command line.
    pub flags: Flags,
    /// Whether the flags override the target.
    pub flags_first: bool,
    /// Returns the value of an environment variable; `None` if it is not set.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The home directory, for the password file.
    pub home: Option<PathBuf>,
    /// The operating system user: the default role.
    pub os_user: Option<String>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The target may hold a password.
        f.debug_struct("Sources").field("flags", &self.flags).finish_non_exhaustive()
    }
}

impl<'a> Sources<'a> {
    /// A target and flags; the rest from the environment and the user of this process.
    #[must_use]
    pub fn of_process(target: Option<&'a str>, flags: Flags) -> Self {
        Self {
            target,
            flags,
            flags_first: false,
            env: &|name| std::env::var(name).ok(),
            home: std::env::home_dir(),
            os_user: whoami::username().ok(),
        }
    }
}
