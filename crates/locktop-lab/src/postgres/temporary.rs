use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::account::Account;
use crate::owned::is_private;
use crate::process::is_plain;

/// A memory file system. A data directory is a thousand small files, and copying them here takes a tenth of the time.
const MEMORY: &str = "/dev/shm";
/// Free space required there: many times what a server needs.
const FREE_BYTES: u64 = 1 << 30;

/// `TMPDIR` if it is set and usable, else memory if there is enough, else `/tmp`.
pub(super) fn directory(account: Account) -> PathBuf {
    let named = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| is_plain(path));
    let memory = Some(PathBuf::from(MEMORY)).filter(|path| named.is_none() && has_room(path));
    let usable = named.or(memory).filter(|path| is_usable(path, account));
    usable.unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn has_room(path: &Path) -> bool {
    rustix::fs::statvfs(path)
        .is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) >= FREE_BYTES)
}

fn is_usable(path: &Path, account: Account) -> bool {
    let writable = |meta: fs::Metadata| match account {
        Account::Own => rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok(),
        Account::Other { uid, .. } => meta.mode() & 0o002 != 0 || meta.uid() == uid,
    };
    // As root, a user's directory is not usable: that user could replace the server's directory.
    account.can_reach(path) && fs::metadata(path).is_ok_and(writable) && is_private(path)
}
