//! Whether the role may signal a session, before it is asked.

use crate::model::backend::Backend;
use crate::model::plan::Rights;
use crate::text;

/// What the role lacks to signal this session, with the statement that gives it; none when it may.
///
/// The rules are those of `pg_signal_backend` in `src/backend/storage/ipc/signalfuncs.c`. A process without a role, such as an
/// autovacuum worker, needs a superuser since 14.10, 15.5 and 16.1; before, it was treated like anybody's. From 18 on
/// `pg_signal_autovacuum_worker` will do for an autovacuum worker, and `pg_signal_backend` will not.
pub(super) fn missing(rights: &Rights, backend: &Backend, hidden: bool) -> Option<String> {
    if rights.superuser {
        return None;
    }
    let user = backend.user.as_deref();
    let is_member = user.is_some_and(|user| has(&rights.member_of, user));
    let role = text::identifier(&rights.role);
    let superuser =
        |whose: &str| Some(format!("{whose}: only a superuser may signal it, and {role} is none"));
    if user.is_some_and(|user| has(&rights.superusers, user)) {
        return superuser("the session of a superuser");
    }
    let mut lacks = Vec::new();
    if hidden && !rights.read_all_stats {
        lacks.push("pg_read_all_stats");
    }
    if user.is_some() {
        if !is_member && !rights.signal_backend {
            lacks.push("pg_signal_backend");
        }
    } else if !is_hidden_client(backend, hidden) {
        let is_autovacuum = backend.backend_type.as_deref() == Some("autovacuum worker");
        let version = rights.version_num;
        match (is_autovacuum, version >= 180_000) {
            (true, true) if !rights.signal_autovacuum => lacks.push("pg_signal_autovacuum_worker"),
            (true, true) => {}
            _ if !is_open(version) => {
                let kind = backend.backend_type.as_deref().unwrap_or("process without a role");
                return superuser(&text::one_line(kind));
            }
            _ if !rights.signal_backend => lacks.push("pg_signal_backend"),
            _ => {}
        }
    }
    if lacks.is_empty() {
        return None;
    }
    Some(format!("{role} may not: GRANT {} TO {role}", lacks.join(", ")))
}

/// Versions in which a process without a role was treated like anybody's (before the fix of CVE-2023-5870).
fn is_open(version_num: u32) -> bool {
    matches!(version_num, 140_000..140_010 | 150_000..150_005 | 160_000..160_001)
}

/// Nothing is known of it, not even what it is.
fn is_hidden_client(backend: &Backend, hidden: bool) -> bool {
    hidden && backend.backend_type.is_none()
}

fn has(names: &[crate::model::Text], name: &str) -> bool {
    names.iter().any(|other| **other == *name)
}
