use rustc_hash::FxHashMap;

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, wait_event};
use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::consequence::KEPT;
use crate::model::lock::{LockTag, LockType};
use crate::model::plan::Verb;
use crate::model::wait_graph::{Party, Root};

pub(super) const CHECK: &str = "root_blocker";

/// The words for a root that keeps a session-level lock: its current statement shows nothing about the lock.
const KEEPS: &str = " runs other statements";

/// Critical if it has been idle in transaction for too long, is idle with a session-level lock, or blocks too many; a
/// warning if it is idle in transaction, waits for what may never come, or a session has waited for too long.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let roots = &look.graph.roots;
    let held = held(look);
    let backends = || roots.iter().filter(|root| matches!(root.party, Party::Backend(_)));
    let listed = backends().take(LIMIT).map(|root| finding(look, root, held.get(&root.party).copied()));
    let left_out = backends().count().saturating_sub(LIMIT);
    listed.chain(Finding::more(CHECK, left_out)).collect()
}

fn held<'a>(look: &CheckInput<'a>) -> FxHashMap<Party, &'a LockTag> {
    let mut held = FxHashMap::default();
    for queue in &look.view.view.graph.queues {
        let waiters = queue.waiters.len();
        for holder in &queue.holders {
            let entry = held.entry(holder.party).or_insert((waiters, &queue.tag));
            if waiters > entry.0 {
                *entry = (waiters, &queue.tag);
            }
        }
    }
    held.into_iter().map(|(party, (_, tag))| (party, tag)).collect()
}

/// The awaited object of a lock; for a transaction the row behind it, if the first waiter's tuple lock shows it.
fn awaited<'b>(look: &'b CheckInput<'_>, tag: &'b LockTag) -> &'b LockTag {
    let queue = look.graph.queues.iter().find(|queue| queue.tag == *tag);
    let waiter = queue.and_then(|queue| queue.waiters.first());
    waiter.map_or(tag, |waiter| look.awaited(tag, waiter.pid))
}

fn finding(look: &CheckInput<'_>, root: &Root, held: Option<&LockTag>) -> Finding {
    let pid = root.party.pid();
    let backend = look.backend(pid);
    let state = backend.and_then(|backend| backend.state);
    let keeps = look.view.kept_key(root.party).is_some();
    let (long, short) = match backend {
        Some(_) if keeps => (KEEPS.to_owned(), KEEPS.to_owned()),
        Some(backend) => words(look, backend),
        None => Words::default(),
    };
    let promise = look.view.promise(root);
    let object = held.map(|tag| look.target(awaited(look, tag), Some(pid)));
    let target = object.clone().filter(|_| keeps || state == Some(State::Idle));
    // For an idle session the summary contains what it holds.
    let about = look.about(pid, object.as_deref().filter(|_| target.is_none()));
    // In the short form the name comes last, so that the numbers are not cut.
    let holds = target.map_or_else(String::new, |target| format!(", holds {target}"));
    let summary = format!("{pid}{long}{holds}, {}", promise.words());
    let is_key = held.is_some_and(|tag| tag.locktype() == LockType::Advisory);
    let (state_words, began) = match backend {
        Some(_) if keeps => (KEEPS.to_owned(), None),
        backend => backend.map_or_else(Default::default, in_row),
    };
    // `holds "nightly-export"`, `holds advisory 1`: the row has room for the kind of lock.
    let lock_in_row = match holds.strip_prefix(", holds ") {
        Some(name) if is_key => {
            let bare = name.strip_prefix("advisory lock ").or_else(|| name.strip_prefix("advisory "));
            format!(", holds advisory lock {}", bare.unwrap_or(name))
        }
        _ => holds.clone(),
    };
    let row = format!("{pid}{state_words}{lock_in_row}, {}", promise.words());
    let remedy = backend.map(|backend| look.view.remedy(backend, is_key));
    let itself = look.view.waits_for_itself(root.party);
    let reason =
        remedy.as_ref().and_then(|remedy| remedy.as_ref().err()).map(|why| format!("no shortcut: {why}"));
    let kept = keeps.then(|| KEPT.to_owned());
    let parts = [itself, kept, reason, Some(about).filter(|about| !about.is_empty())];
    let about = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    // A session that got its lock a moment ago does what the others waited for: it should not be terminated yet.
    // If it blocks many, the severity is not reduced.
    let is_young =
        look.new_roots.is_young(root.party, look.snapshot.taken_at) && root.blocked < look.thresholds.blocked;
    let severity = if keeps { Severity::Critical } else { severity(look, root, backend) };
    let severity = if is_young { severity.min(Severity::Info) } else { severity };
    let finding = Finding::new(CHECK, severity, summary, look.subject(root.party));
    Finding {
        blocked: root.blocked,
        since: root.longest_wait,
        help: remedy.and_then(Result::ok).map(name).filter(|_| !is_young),
        ..finding
            .short(format!("{pid}{short}, {}{holds}", promise.short()))
            .in_row(began.or(root.longest_wait), row, &lock_in_row)
            .about(about)
            .running(look.statement(pid))
    }
    .expected(look.expected(root.party, None, root.longest_wait))
}

fn name(verb: Verb) -> &'static str {
    if verb == Verb::Cancel { "cancel" } else { "terminate" }
}

fn severity(look: &CheckInput<'_>, root: &Root, backend: Option<&Backend>) -> Severity {
    let thresholds = look.thresholds;
    let state = backend.and_then(|backend| backend.state);
    let idle_since = backend.and_then(|backend| backend.state_change);
    let in_transaction = state.is_some_and(State::is_idle_in_transaction);
    let too_long = in_transaction && look.is_older(idle_since, thresholds.idle_in_transaction);
    if too_long || state == Some(State::Idle) || root.blocked >= thresholds.blocked {
        Severity::Critical
    } else if in_transaction
        || backend.is_some_and(wait_event::stalls)
        || look.is_older(root.longest_wait, thresholds.wait)
    {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// The long and the short form, each with a leading blank.
type Words = (String, String);

/// What a root does: its kind if it is not a client backend, its state and since when, and its own wait.
fn words(look: &CheckInput<'_>, backend: &Backend) -> Words {
    let both = |text: String| (text.clone(), text);
    match backend.backend_type.as_deref() {
        Some("startup") => return both(" startup process (the cause is on the primary)".to_owned()),
        Some("autovacuum worker") => {
            let why = if backend.prevents_wraparound() { " to prevent wraparound" } else { "" };
            return both(format!(" autovacuum{why}{}", look.age_text(backend.xact_start)));
        }
        _ => {}
    }
    let kind = match backend.backend_type.as_deref() {
        None | Some("client backend") => String::new(),
        Some(kind) => format!(" {kind}"),
    };
    let idle = look.age_text(backend.state_change);
    match backend.state {
        Some(State::IdleInTransaction) => {
            (format!("{kind} idle in transaction{idle}"), format!("{kind} idle in xact{idle}"))
        }
        Some(State::IdleInTransactionAborted) => (
            format!("{kind} idle in transaction (aborted){idle}"),
            format!("{kind} idle in xact (aborted){idle}"),
        ),
        Some(State::Idle) => both(format!("{kind} idle{idle}")),
        Some(State::Active | State::FastpathFunctionCall) => {
            let active = look.age_text(backend.query_start);
            (format!("{kind} active{active}{}", own_wait(backend)), format!("{kind} active{active}"))
        }
        _ => both(kind),
    }
}

/// The state of a root without its age, and the start of that state.
fn in_row(backend: &Backend) -> (String, Option<Timestamp>) {
    let kind = match backend.backend_type.as_deref() {
        None | Some("client backend") => String::new(),
        Some("startup") => return (" startup process (the cause is on the primary)".to_owned(), None),
        Some("autovacuum worker") => {
            let why = if backend.prevents_wraparound() { " to prevent wraparound" } else { "" };
            return (format!(" autovacuum{why}"), backend.xact_start);
        }
        Some(kind) => format!(" {kind}"),
    };
    match backend.state {
        Some(State::Active | State::FastpathFunctionCall) => {
            (format!("{kind} active{}", own_wait(backend)), backend.query_start)
        }
        Some(state) if state == State::Idle || state.is_idle_in_transaction() => {
            (format!("{kind} {}", state.as_str()), backend.state_change)
        }
        _ => (kind, None),
    }
}

fn own_wait(backend: &Backend) -> String {
    match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        (Some("Lock"), _) => String::new(),
        (Some(kind), Some(event)) if kind != event => format!(" ({kind} {event})"),
        (Some(_), Some(event)) => format!(" ({event})"),
        _ => String::new(),
    }
}
