//! Where the config file is.

use std::path::PathBuf;

use etcetera::BaseStrategy;

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
    // As the XDG specification has it, a relative path is ignored.
    let xdg = env("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = xdg.or_else(|| etcetera::base_strategy::Xdg::new().ok().map(|xdg| xdg.config_dir()))?;
    Some(Location { path: directory.join("locktop/config.toml"), named: false })
}
