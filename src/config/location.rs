//! Where the config file is.

use std::path::PathBuf;

use locktop_base::place::of_user;

/// Where the config file is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Its path; whether it is there is only known when it is read.
    pub path: PathBuf,
    /// Whether somebody named it, and it must therefore be there.
    pub named: bool,
}

/// The file that `--config` names, else `LOCKTOP_CONFIG`, else the user's: `locktop/config.toml` in
/// `XDG_CONFIG_HOME` or `~/.config`. None when there is no home directory either.
pub fn locate(flag: Option<PathBuf>, env: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
    let named = flag.or_else(|| env("LOCKTOP_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    if let Some(path) = named {
        return Some(Location { path, named: true });
    }
    let path = of_user("XDG_CONFIG_HOME", ".config", env)?.join("locktop/config.toml");
    Some(Location { path, named: false })
}
