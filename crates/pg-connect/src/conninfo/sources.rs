//! Where settings come from, and which of them wins.

use std::path::PathBuf;

/// What `-h -p -U -d` said.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-h`: one host or several, separated by commas, or the directory of a socket; none without the flag.
    pub host: Option<String>,
    /// `-p`: one port, or one for each host; none without the flag.
    pub port: Option<String>,
    /// `-U`: the role to log in as; none without the flag.
    pub user: Option<String>,
    /// `-d`: a database name, a URI or a key=value string; none without the flag.
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

/// Everything that may say where to connect. What comes first wins: the target, the flags, the service that they or the
/// environment name, the environment, the defaults; and as in psql a flag does not override a connection string. Flags do override a target that was
/// looked up by name (`flags_first`).
pub struct Sources<'a> {
    /// A URI, a key=value string or a database name.
    pub target: Option<&'a str>,
    /// What the command line said.
    pub flags: Flags,
    /// Whether the flags override the target.
    pub flags_first: bool,
    /// Looks up an environment variable; none where it is not set.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The home directory, for the password file.
    pub home: Option<PathBuf>,
    /// The name of the user who runs this: the default user.
    pub os_user: Option<String>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The target may hold a password.
        f.debug_struct("Sources").field("flags", &self.flags).finish_non_exhaustive()
    }
}

impl<'a> Sources<'a> {
    /// A target and flags, and for the rest this process: its environment and its user.
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
