use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Ensures that this process may open `more` more files, as far as the system allows: the usual limit of 1,024 is less
/// than 1,000 sessions need.
pub(super) fn allow_open_files(more: usize) {
    let limit = getrlimit(Resource::Nofile);
    // A generous allowance for the other open files of the process.
    let wanted = u64::try_from(more).unwrap_or(u64::MAX).saturating_add(512);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        // Without it, opening the sessions fails and reports why.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}
