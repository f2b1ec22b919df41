use std::path::PathBuf;

use locktop_base::place::of_user;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The path. The file need not exist.
    pub path: PathBuf,
    /// Whether the user named the file, so that it must exist.
    pub named: bool,
}

/// The file of `--config`, otherwise of `LOCKTOP_CONFIG`, otherwise `locktop/config.toml` in `XDG_CONFIG_HOME` or
/// `~/.config`. `None` if there is no home directory either.
pub fn locate(flag: Option<PathBuf>, env: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
    let named = flag.or_else(|| env("LOCKTOP_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    if let Some(path) = named {
        return Some(Location { path, named: true });
    }
    let path = of_user("XDG_CONFIG_HOME", ".config", env)?.join("locktop/config.toml");
    Some(Location { path, named: false })
}
