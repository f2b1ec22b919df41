//! Directories of the user.

use std::path::PathBuf;

/// The value of `variable`, else `default` in the home directory. A relative path is ignored, as the XDG specification
/// requires.
#[must_use]
pub fn of_user(variable: &str, default: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || std::env::home_dir().filter(absolute).map(|home| home.join(default));
    env(variable).map(PathBuf::from).filter(absolute).or_else(home)
}
