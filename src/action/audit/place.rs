use std::path::PathBuf;

use locktop_base::file::of_user;

/// `locktop` in the user's state directory: `XDG_STATE_HOME` or `~/.local/state`. `None` if there is no home directory.
pub fn directory(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(of_user("XDG_STATE_HOME", ".local/state", env)?.join("locktop"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_none() {
        let place = |value: &str| directory(&|name| (name == "XDG_STATE_HOME").then(|| value.to_owned()));
        assert_eq!(place("/var/state"), Some("/var/state/locktop".into()));
        // The result for a relative path depends on the environment of the test run.
        assert!(place("state").is_none_or(|path| path.is_absolute()));
    }
}
