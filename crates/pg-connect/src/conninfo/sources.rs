use std::path::PathBuf;

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
