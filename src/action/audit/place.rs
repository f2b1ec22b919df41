//! Where the record is.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// `locktop` in the user's state directory: `XDG_STATE_HOME` or `~/.local/state`. None when there is no home directory either.
pub fn directory(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    // As the XDG specification has it, a relative path is ignored.
    let xdg = env("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = xdg.or_else(|| etcetera::base_strategy::Xdg::new().ok().and_then(|xdg| xdg.state_dir()))?;
    Some(state.join("locktop"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_none() {
        let place = |value: &str| directory(&|name| (name == "XDG_STATE_HOME").then(|| value.to_owned()));
        assert_eq!(place("/var/state"), Some("/var/state/locktop".into()));
        // Where it is then is said by the environment of whoever runs this.
        assert!(place("state").is_none_or(|path| path.is_absolute()));
    }
}
