//! Recognizes statements that wait for a list of sessions, by their text.

use crate::backend::Backend;

/// The transactions that a `CONCURRENTLY` statement waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Concurrently {
    /// Those with any lock on the table, not only one for writing.
    pub(super) readers: bool,
    /// Those that have a snapshot.
    pub(super) snapshots: bool,
    /// It holds no lock on its tables while it waits, and requests new ones after that (`ATExecDetachPartition` in
    /// `tablecmds.c`).
    pub(super) locks_again: bool,
}

pub(super) fn concurrently(backend: &Backend) -> Option<Concurrently> {
    const WORDS: usize = 64;
    let query: &str = backend.query.as_ref()?.unredacted();
    let mut words =
        query.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).take(WORDS);
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let verb = words
        .by_ref()
        .find(|word| ["create", "reindex", "drop", "alter"].iter().any(|verb| is(word, verb)))?;
    words.any(|word| is(word, "concurrently")).then(|| Concurrently {
        readers: !is(verb, "create"),
        snapshots: is(verb, "create") || is(verb, "reindex"),
        locks_again: is(verb, "alter"),
    })
}

/// Whether it creates a logical replication slot, by the replication protocol or by a function.
pub(super) fn creates_slot(backend: &Backend) -> bool {
    let query = backend.query.as_ref().map_or("", |query| query.unredacted());
    query.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| {
        ["create_replication_slot", "pg_create_logical_replication_slot"]
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name))
    })
}

/// Old snapshots of VACUUM do not delay an index build (`PROC_IN_VACUUM`).
pub(super) fn is_vacuum(backend: &Backend) -> bool {
    let query = backend.query.as_ref().map_or("", |query| query.unredacted()).trim_start();
    query.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("vacuum"))
        || query.starts_with("autovacuum: VACUUM")
}
