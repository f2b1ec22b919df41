//! Where the directory of a running server goes.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::account::Account;

/// Memory that looks like a directory. A data directory is a thousand small files, and here they are copied in a tenth of
/// the time.
const MEMORY: &str = "/dev/shm";
/// What has to be free there: many times what a server needs.
const ROOM: u64 = 1 << 30;

/// `TMPDIR` if it is set and can be used, else memory if there is enough of it, else `/tmp`.
pub(super) fn temporary(account: Account) -> PathBuf {
    let named = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| is_plain(path));
    let memory = Some(PathBuf::from(MEMORY)).filter(|path| named.is_none() && is_roomy(path));
    let usable = named.or(memory).filter(|path| is_usable(path, account));
    usable.unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The path of a socket has at most about 100 bytes, and the server takes commas and quotes in it for something else.
fn is_plain(path: &Path) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    path.to_str().is_some_and(|text| text.len() <= 60 && text.starts_with('/') && text.chars().all(plain))
}

fn is_roomy(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) >= ROOM)
}

/// Whether the account can make a directory there.
fn is_usable(path: &Path, account: Account) -> bool {
    let writable = |meta: fs::Metadata| match account {
        Account::Own => rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok(),
        Account::Other { uid, .. } => meta.mode() & 0o002 != 0 || meta.uid() == uid,
    };
    account.can_reach(path) && fs::metadata(path).is_ok_and(writable)
}

#[cfg(test)]
mod tests {
    use super::is_plain;
    use std::path::Path;

    #[test]
    fn a_path_that_does_not_fit_a_socket_is_not_used() {
        assert!(is_plain(Path::new("/var/folders/x_1/tmp.d-2")));
        assert!(!is_plain(Path::new("relative")));
        assert!(!is_plain(Path::new("/tmp/with, comma")));
        assert!(!is_plain(Path::new(&format!("/{}", "x".repeat(90)))));
    }
}
