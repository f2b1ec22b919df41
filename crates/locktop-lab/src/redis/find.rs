use std::env;
use std::path::PathBuf;

use super::error::RedisServerError;
use crate::install;
use crate::owned::{is_owned, owned};

const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

const DIRECTORIES: [&str; 5] =
    ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/sbin", "/home/linuxbrew/.linuxbrew/bin"];

/// `LOCKTOP_REDIS_SERVER`, or the first program on the search path or in the usual directories.
pub fn find() -> Result<PathBuf, RedisServerError> {
    if let Some(named) = env::var_os("LOCKTOP_REDIS_SERVER").filter(|path| !path.is_empty()) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            return Err(RedisServerError::NoFile(named));
        }
        return owned(&named).map_err(|reason| RedisServerError::NotOwned { path: named, reason });
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = || env::split_paths(&path).chain(DIRECTORIES.iter().map(PathBuf::from));
    search(directories).ok_or_else(|| RedisServerError::NoProgram { install: install::redis() })
}

fn search<I: Iterator<Item = PathBuf>>(directories: impl Fn() -> I) -> Option<PathBuf> {
    PROGRAMS.iter().find_map(|program| {
        directories().map(|directory| directory.join(program)).find(|file| file.is_file() && is_owned(file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_is_taken_before_its_fork_and_nothing_is_found_where_nothing_is() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let directories = || [first.path(), second.path()].map(PathBuf::from).into_iter();
        assert_eq!(search(directories), None);
        std::fs::write(first.path().join("valkey-server"), "").unwrap();
        assert_eq!(search(directories), Some(first.path().join("valkey-server")));
        std::fs::write(second.path().join("redis-server"), "").unwrap();
        assert_eq!(search(directories), Some(second.path().join("redis-server")));
    }

    #[test]
    fn without_one_the_error_says_how_to_get_it() {
        let error = RedisServerError::NoProgram { install: install::redis() }.to_string();
        assert!(error.contains("install it with `"), "{error}");
        assert!(error.contains("LOCKTOP_REDIS_SERVER"), "{error}");
    }
}
