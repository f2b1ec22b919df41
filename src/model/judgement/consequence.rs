//! The effect of cancel and terminate on a session, determined in one place from its kind, its state, its statement and
//! what it waits for.
//!
//! The confirmation, the finding and the detail page show this; the recommended shortcut follows from it.

use crate::model::backend::{Backend, State};
use crate::model::plan::Verb;
use crate::model::session_facts::{WriteKnowledge, awaits_whole_relation, write_knowledge};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::words;
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consequence {
    pub effect: DataEffect,
    /// The effect on data, in one printable line: `rolls back its transaction, 3m12s old; it may have written`.
    pub words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataEffect {
    /// Not possible: the signal is refused, or has no effect on this kind of process.
    Refused,
    /// No effect until the client of the session reads or sends.
    NoneYet,
    Nothing,
    /// Whether it is in a transaction is hidden from this role.
    Unknown,
    RollsBack,
    /// Its transaction has already failed: the rest of it is rolled back.
    Failed,
    /// Its transaction is already committed locally, and remains committed.
    Committed,
    InvalidDatabase,
    /// An index is left invalid, or a partition partially detached.
    HalfDone,
    /// It stops; finished work is kept.
    Stops,
    Restarts,
}

impl DataEffect {
    pub fn short(self) -> Option<&'static str> {
        Some(match self {
            Self::RollsBack => "rolls back",
            Self::Nothing => "rolls nothing back",
            Self::Unknown => "its transaction is hidden",
            Self::Failed => "ends a failed transaction",
            Self::Committed => "its commit stays",
            Self::InvalidDatabase => "leaves the database invalid",
            Self::NoneYet => "no effect until its client acts",
            Self::Refused | Self::HalfDone | Self::Stops | Self::Restarts => return None,
        })
    }

    pub fn leaves_damage(self) -> bool {
        matches!(self, Self::InvalidDatabase | Self::HalfDone)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementKind {
    DropDatabase,
    /// `CREATE INDEX CONCURRENTLY` and similar, with what a cancel leaves behind.
    Concurrent(&'static str),
    /// VACUUM, which uses separate transactions for each table.
    Vacuum,
    BaseBackup,
    CreateSlot,
    Other,
}

/// Whether a query began its transaction, so that no savepoint can be older than it: both times are the start of the same
/// client message (`StartTransaction` takes that of the statement).
pub(in crate::model) fn is_one_statement(backend: &Backend) -> bool {
    let is_first = backend.xact_start.is_some() && backend.xact_start == backend.query_start;
    is_first && backend.state == Some(State::Active)
}

impl SnapshotView<'_> {
    pub fn consequence(self, verb: Verb, backend: &Backend) -> Consequence {
        let of = |effect: DataEffect, words: String| Consequence { effect, words };
        if let Some(why) = backend.backend_type.as_deref().and_then(of_the_server) {
            return of(DataEffect::Refused, why.to_owned());
        }
        if verb == Verb::Cancel {
            if let Err(why) = has_query(backend) {
                return of(DataEffect::Refused, why.to_owned());
            }
            if let Some(why) = ignores_cancel(backend) {
                return of(DataEffect::NoneYet, why.to_owned());
            }
        }
        let statement = statement(backend);
        if let Some(consequence) = of_kind(verb, backend, statement) {
            return consequence;
        }
        if awaits_standby(backend) {
            let words = "its transaction is committed locally and stays so; the standby has not confirmed it";
            return of(DataEffect::Committed, words.to_owned());
        }
        // A statement that waits for its first lock has changed nothing. `DROP INDEX CONCURRENTLY` and `DETACH PARTITION CONCURRENTLY`
        // request `AccessExclusiveLock` last, after they have committed a first part.
        let has_begun = backend.wait_event_type.as_deref() != Some("Lock")
            || backend.wait_event.as_deref() == Some("virtualxid")
            || awaits_whole_relation(&self.graph, backend.pid);
        match statement {
            StatementKind::DropDatabase if has_begun => {
                let unless = if is_dropping(backend) {
                    ""
                } else {
                    "unless it still waits, up to 5 s, for the sessions there: "
                };
                let words = format!(
                    "{unless}leaves the database invalid (datconnlimit = -2); then only another DROP DATABASE removes it"
                );
                of(DataEffect::InvalidDatabase, words)
            }
            StatementKind::Concurrent(left) if has_begun => of(DataEffect::HalfDone, left.to_owned()),
            StatementKind::Vacuum if backend.state == Some(State::Active) => {
                of(DataEffect::Stops, "VACUUM stops; the work it has finished is kept".to_owned())
            }
            _ => self.of_transaction(verb, backend),
        }
    }

    fn of_transaction(self, verb: Verb, backend: &Backend) -> Consequence {
        // A transaction that has failed as a whole has neither a start nor an ID any more (`AbortTransaction` in
        // `src/backend/access/transam/xact.c`). With an ID only a subtransaction has failed.
        if backend.state == Some(State::IdleInTransactionAborted) {
            let (effect, words) = match backend.backend_xid {
                None => {
                    (DataEffect::Failed, "ends its transaction, which has failed: it has nothing to commit")
                }
                Some(_) => (
                    DataEffect::RollsBack,
                    "rolls back its transaction, which its client could still commit after ROLLBACK TO SAVEPOINT; it may have written",
                ),
            };
            return Consequence { effect, words: words.to_owned() };
        }
        let Some(start) = backend.xact_start else {
            let (effect, words) = if backend.state.is_none() && self.hides(Some(backend)) {
                (DataEffect::Unknown, "this role cannot see whether it is in a transaction")
            } else {
                (DataEffect::Nothing, "it has no open transaction: nothing is rolled back")
            };
            return Consequence { effect, words: words.to_owned() };
        };
        let age = text::duration(self.age(start));
        // An error that a savepoint or an EXCEPTION block catches ends no more than what came after that.
        let may_go_on = verb == Verb::Cancel && !is_one_statement(backend);
        let unless = if may_go_on { ", unless it has a savepoint" } else { "" };
        let wrote = match write_knowledge(&self.graph, backend) {
            WriteKnowledge::No => "it has written nothing",
            WriteKnowledge::Maybe => "it may have written",
            WriteKnowledge::ForLock => {
                "it has a transaction ID for the lock that it waits for, and may have written"
            }
        };
        Consequence {
            effect: DataEffect::RollsBack,
            words: format!("rolls back its transaction, {age} old{unless}; {wrote}"),
        }
    }

    /// The recommended verb for a session that blocks others, or the reason why there is none. `keeps`: the awaited lock is an
    /// advisory lock, which may be held at session level.
    pub fn remedy(self, backend: &Backend, keeps: bool) -> Result<Verb, String> {
        let kind = backend.backend_type.as_deref();
        let cancel = || self.consequence(Verb::Cancel, backend);
        if let Some(why) = kind.and_then(of_the_server) {
            return Err(why.to_owned());
        }
        if kind == Some("autovacuum worker") && backend.prevents_wraparound() {
            return Err("it prevents wraparound, and the server starts it again: let it finish, or cancel the statement that waits behind it".to_owned());
        }
        if awaits_standby(backend) {
            return Err(
                "it has committed; it waits for a standby: repair the standby or set synchronous_standby_names"
                    .to_owned(),
            );
        }
        match cancel().effect {
            DataEffect::InvalidDatabase if is_dropping(backend) => Err(
                "terminating DROP DATABASE now leaves the database invalid: find the process that does not answer"
                    .to_owned(),
            ),
            DataEffect::InvalidDatabase => Err(
                "DROP DATABASE may still wait for the sessions in that database, up to 5 s; if it removes files already, terminating it leaves the database invalid"
                    .to_owned(),
            ),
            DataEffect::Refused | DataEffect::NoneYet => Ok(Verb::Terminate),
            _ if keeps => Ok(Verb::Terminate),
            _ => Ok(Verb::Cancel),
        }
    }

    /// Why the program of a session waits for itself: another session of it, with the same role, database and address, waits
    /// for a list of transactions that includes this one.
    pub fn waits_for_itself(self, party: Party) -> Option<String> {
        let own = self.backend(party.pid())?;
        let application = own.application.as_deref().filter(|name| !name.is_empty())?;
        let is_same = |other: &Backend| {
            let same = (other.usesysid, other.datid, &other.client) == (own.usesysid, own.datid, &own.client);
            same && other.application.as_deref() == Some(application)
                && matches!(statement(other), StatementKind::Concurrent(_))
        };
        let behind = self.view.graph.directly_behind(party);
        behind.iter().filter_map(|waiter| self.backend(waiter.pid())).find(|other| is_same(other))?;
        let held =
            self.snapshot.locks.last_rows().iter().filter(|lock| lock.granted && lock.pid == Some(own.pid));
        let mut names =
            held.filter_map(|lock| words::lock_name(self.snapshot, &self.lock_names, &lock.tag, Some(own)));
        let is_flyway = names.any(|name| name.name.starts_with("Flyway"));
        let advice = if is_flyway {
            "Flyway waits for its own lock: set flyway.postgresql.transactional.lock=false".to_owned()
        } else {
            format!("{} waits for another session of its own", text::one_line(application))
        };
        Some(advice)
    }
}

/// Whether DROP DATABASE certainly no longer waits for the sessions in the database (`CountOtherDBBackends` in
/// `src/backend/storage/ipc/procarray.c` sleeps without a wait event).
fn is_dropping(backend: &Backend) -> bool {
    let events = ["ProcSignalBarrier", "CheckpointStart", "CheckpointDone"];
    backend.wait_event.as_deref().is_some_and(|event| events.contains(&event))
}

/// Why a session holds an awaited lock although it runs other statements.
pub const KEPT: &str =
    "its last query did not take the lock: the session keeps it, whichever client a pool gives it to";

/// Server processes. `pg_signal_backend` in `src/backend/storage/ipc/signalfuncs.c` does not find most of them; it would
/// signal the launchers, without effect.
pub fn of_the_server(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "startup" => {
            "the startup process replays the primary's WAL and cannot be terminated; the cause is on the primary"
        }
        "walreceiver" => "receives the primary's WAL and cannot be terminated from here",
        "slotsync worker" => "synchronizes the standby's slots with the primary; the server starts it again",
        "autovacuum launcher" | "logical replication launcher" => {
            "belongs to the server, which starts it again at once"
        }
        "checkpointer" | "background writer" | "walwriter" | "archiver" | "logger" | "io worker"
        | "walsummarizer" | "standalone backend" | "not initialized" => {
            "is a process of the server, not a session: it cannot be terminated"
        }
        _ => return None,
    })
}

/// For a session without a query, `pg_cancel_backend` returns true but does nothing.
pub fn has_query(backend: &Backend) -> Result<(), &'static str> {
    Err(match backend.state {
        Some(State::Active) => return Ok(()),
        Some(State::IdleInTransaction) => "idle in transaction: no query to cancel; K terminates the session",
        Some(State::IdleInTransactionAborted) => {
            "idle in a failed transaction: no query to cancel; K terminates the session"
        }
        Some(State::Idle) => "idle: no query to cancel; K terminates the session",
        Some(State::FastpathFunctionCall) => {
            "executes a fast-path function call; whether a cancel is safe is not known; K terminates the session"
        }
        Some(State::Starting) => "is still connecting: no query to cancel yet",
        Some(State::Disabled) => {
            "its activity is not known (track_activities is off for it); K terminates the session"
        }
        Some(State::Other) | None => "not known whether it runs a query; K terminates the session",
    })
}

/// Sessions that ignore a cancel: while a statement sends to its client or reads from it, the server handles only a
/// termination of the session (`ProcessClientWriteInterrupt` and `ProcessClientReadInterrupt` in
/// `src/backend/tcop/postgres.c`).
pub(in crate::model) fn ignores_cancel(backend: &Backend) -> Option<&'static str> {
    if !matches!(backend.backend_type.as_deref()?, "client backend" | "walsender") {
        return None;
    }
    match (backend.wait_event_type.as_deref()?, backend.wait_event.as_deref()?) {
        ("Client", "ClientWrite") => Some(
            "its client does not read the data sent to it: a cancel has no effect until it does; K terminates the session",
        ),
        ("Client", "ClientRead") => Some(
            "its client does not send the rest of its data: a cancel has no effect until it does; K terminates the session",
        ),
        _ => None,
    }
}

/// A session that waits for a standby has already committed (`SyncRepWaitForLSN` in `src/backend/replication/syncrep.c`).
pub fn awaits_standby(backend: &Backend) -> bool {
    backend.wait_event.as_deref() == Some("SyncRep")
}

fn of_kind(verb: Verb, backend: &Backend, statement: StatementKind) -> Option<Consequence> {
    let (effect, words) = match backend.backend_type.as_deref()? {
        "client backend" | "parallel worker" => return None,
        "autovacuum worker" if backend.prevents_wraparound() => (
            DataEffect::Restarts,
            "it prevents wraparound, and the server starts it again; without it the server will stop accepting writes".to_owned(),
        ),
        "autovacuum worker" => {
            (DataEffect::Restarts, "autovacuum starts it again later; until then dead rows stay".to_owned())
        }
        "walsender" => match statement {
            StatementKind::BaseBackup => (DataEffect::Stops, "the base backup is lost and must be started again".to_owned()),
            StatementKind::CreateSlot => (DataEffect::Stops, "the replication slot is not created".to_owned()),
            _ => (
                DataEffect::Restarts,
                "its standby or receiver connects again; commits that wait for it keep waiting".to_owned(),
            ),
        },
        worker if worker.starts_with("logical replication") => (
            DataEffect::Restarts,
            "rolls back what it applies; the server starts it again and it applies the same once more".to_owned(),
        ),
        worker => {
            let ends = if verb == Verb::Cancel { "its statement ends" } else { "it ends" };
            let worker = text::one_line(worker);
            (DataEffect::Stops, format!("{ends}: a background worker, {worker}; the extension that registered it might not start it again"))
        }
    };
    Some(Consequence { effect, words })
}

fn statement(backend: &Backend) -> StatementKind {
    if backend.state != Some(State::Active) {
        return StatementKind::Other;
    }
    let Some(query) = backend.query.as_ref() else { return StatementKind::Other };
    let words = upper_words(query.unredacted());
    let begins = |start: &str| {
        start
            .split(' ')
            .zip(words.iter().map(String::as_str).chain(std::iter::repeat("")))
            .all(|(one, other)| one == other)
    };
    let concurrently = words.iter().any(|word| word == "CONCURRENTLY");
    let detaches = words.iter().any(|word| word == "DETACH");
    if begins("DROP DATABASE") {
        StatementKind::DropDatabase
    } else if concurrently && (begins("CREATE INDEX") || begins("CREATE UNIQUE INDEX")) {
        StatementKind::Concurrent("CREATE INDEX CONCURRENTLY leaves an invalid index: drop it")
    } else if concurrently && begins("REINDEX") {
        StatementKind::Concurrent(
            "REINDEX CONCURRENTLY leaves an invalid index (…_ccnew or …_ccold): drop it",
        )
    } else if concurrently && begins("DROP INDEX") {
        StatementKind::Concurrent("DROP INDEX CONCURRENTLY leaves an invalid index: drop it again")
    } else if concurrently && detaches && begins("ALTER TABLE") {
        StatementKind::Concurrent(
            "the partition remains partially detached; ALTER TABLE … DETACH PARTITION … FINALIZE completes it",
        )
    } else if begins("VACUUM") && !words.iter().any(|word| word == "FULL") {
        StatementKind::Vacuum
    } else if begins("BASE_BACKUP") {
        StatementKind::BaseBackup
    } else if begins("CREATE_REPLICATION_SLOT") {
        StatementKind::CreateSlot
    } else {
        StatementKind::Other
    }
}

fn upper_words(query: &str) -> Vec<String> {
    const HEAD: usize = 2_000;
    const WORDS: usize = 24;
    let mut rest: &str =
        query.char_indices().nth(HEAD).map_or(query, |(end, _)| query.get(..end).unwrap_or(query));
    let mut plain = String::new();
    while let Some(start) = rest.find(['-', '/']) {
        let (before, comment) = rest.split_at(start);
        plain.push_str(before);
        let end = match comment.get(..2) {
            Some("--") => comment.find('\n').unwrap_or(comment.len()),
            Some("/*") => comment.find("*/").map_or(comment.len(), |end| end + 2),
            _ => 1,
        };
        plain.push(' ');
        rest = comment.get(end..).unwrap_or_default();
    }
    plain.push_str(rest);
    let words =
        plain.split(|c: char| c.is_whitespace() || "();,".contains(c)).filter(|word| !word.is_empty());
    words.take(WORDS).map(str::to_ascii_uppercase).collect()
}
