//! The data directory that every server starts from: created once for each server version, then copied.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::EmbeddedError;
use super::account::Account;
use super::cache::Cache;
use super::find::Binaries;

/// Increased whenever `ARGUMENTS` change, so that older templates are not reused.
const REVISION: u32 = 1;

/// `initdb`: no waiting for the disk, a superuser `postgres` without a password (no other user can reach the socket), and
/// small WAL segments, which make the copy faster.
const ARGUMENTS: [&str; 8] =
    ["-N", "-U", "postgres", "-A", "trust", "--encoding=UTF8", "--locale=C", "--wal-segsize=1"];

/// The directory to copy. Blocks while it is created, the first time.
pub(super) fn ensure(
    binaries: &Binaries,
    account: Account,
    notice: fn(&str),
) -> Result<PathBuf, EmbeddedError> {
    let cache = Cache::for_account(account)?;
    let name = format!("{}-{}-{REVISION}", slug(&binaries.version), account.uid());
    let parent = cache.directory("template")?;
    let template = parent.join(&name);
    if template.is_dir() {
        return Ok(template);
    }
    cache.locked(&format!("template-{name}"), || {
        if !template.is_dir() {
            notice(&format!("making a server template for {} in {}", binaries.version, template.display()));
            make(binaries, account, &parent, &template)?;
        }
        Ok(template.clone())
    })
}

/// Creates it next to its destination and moves it there, so that it is either complete or absent.
fn make(binaries: &Binaries, account: Account, parent: &Path, template: &Path) -> Result<(), EmbeddedError> {
    let work = tempfile::Builder::new().prefix(".initdb-").tempdir_in(parent);
    let work = work.map_err(EmbeddedError::file("create a directory in", parent))?;
    account.own(work.path())?;
    let data = work.path().join("data");
    initdb(binaries, account, &data)?;
    // Only the owner may read it; the server requires that, too.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700))
        .map_err(EmbeddedError::file("close", &data))?;
    fs::rename(&data, template).map_err(EmbeddedError::file("create", template))
}

fn initdb(binaries: &Binaries, account: Account, data: &Path) -> Result<(), EmbeddedError> {
    let program = binaries.bin.join("initdb");
    let output = account.command(&program).args(ARGUMENTS).arg("-D").arg(data).stdin(Stdio::null()).output();
    let failed = |output| EmbeddedError::Program { program: program.display().to_string(), output };
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// A version as a file name: `15.13-debian-15.13-0-deb12u1`.
fn slug(version: &str) -> String {
    let version = version.strip_prefix("postgres (PostgreSQL) ").unwrap_or(version);
    let parts =
        version.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn a_version_becomes_a_file_name() {
        assert_eq!(slug("postgres (PostgreSQL) 18.4"), "18.4");
        assert_eq!(
            slug("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)"),
            "15.13-debian-15.13-0-deb12u1"
        );
    }
}
