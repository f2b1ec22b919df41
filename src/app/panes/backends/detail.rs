use std::cmp::Reverse;

use crate::app::context::Context;
use crate::app::detail::{ago, consequence, field, fields, heading, listed, party, reasons, words};
use crate::app::line::{Line, Tone};
use crate::model::backend::{Backend, BackendId};
use crate::model::disclosure::{Channel, shown};
use crate::model::lock::{Lock, LockType, VirtualTransaction};
use crate::model::plan::Verb;
use crate::model::session_facts::{WriteKnowledge, write_knowledge};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::{EdgeKind, Party};
use crate::order::SortExt;

pub(super) fn lines(context: &Context<'_>, id: BackendId, width: usize) -> Option<Vec<Line>> {
    let backend = context.backend(id.pid).filter(|backend| backend.id() == id)?;
    let subject = Party::Backend(backend.group());
    let mut lines = identity(context, backend);
    lines.extend(waiting(context, subject));
    lines.extend(consequence(context, subject));
    lines.extend(keeps(context, subject));
    lines.extend(reasons(context, subject));
    lines.extend(remedy(context, backend));
    lines.extend(rights(context, backend));
    lines.push(Line::new());
    lines.extend(query(context, backend, width));
    lines.push(Line::new());
    lines.extend(below(context, subject));
    let mine = |lock: &&Lock| lock.pid.is_some_and(|pid| pid == backend.pid);
    lines.extend(held(context, context.snapshot.locks.last_rows().iter().filter(mine)));
    Some(lines)
}

/// How long the locks of the session would outlive its client's host; `None` if the client is local or the session
/// holds no locks.
fn host_lost(context: &Context<'_>, backend: &Backend) -> Option<Line> {
    let is_remote = backend.client.as_deref().is_some_and(|client| !client.is_empty() && client != "[local]");
    let holds = || {
        context.snapshot.locks.last_rows().iter().any(|lock| lock.granted && lock.pid == Some(backend.pid))
    };
    if !is_remote || !holds() {
        return None;
    }
    let keepalives = context.snapshot.server()?.keepalives;
    let words = match keepalives.after() {
        Some(seconds) => format!("the server terminates it after {} (tcp_keepalives_*)", crate::text::duration(seconds.into())),
        None => "the server terminates it when its operating system reports the loss: on Linux after 2h11m, unless tcp_keepalives_* are set".to_owned(),
    };
    Some(field("host lost", words, Tone::Dim))
}

fn identity(context: &Context<'_>, backend: &Backend) -> Vec<Line> {
    let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut lines = vec![
        fields(&[
            ("role", words(backend.user.as_ref())),
            ("database", words(backend.database.as_ref())),
            ("application", words(backend.application.as_ref())),
            ("client", words(backend.client.as_ref())),
        ]),
        fields(&[
            ("type", words(backend.backend_type.as_ref())),
            ("started", ago(context, backend.backend_start)),
        ]),
    ];
    if let Some(kind) = backend.backend_type.as_deref().and_then(explain_type) {
        lines.push(field("", kind, Tone::Warning));
    }
    if let Some(state) = backend.state {
        let since = since(context, backend.state_change);
        let tone = if state.is_idle_in_transaction() { Tone::Warning } else { Tone::Plain };
        lines.push(field("state", format!("{}{since}", state.as_str()), tone));
    }
    if let Some(kind) = backend.wait_event_type.as_deref() {
        let event = backend.wait_event.as_deref().unwrap_or("?");
        lines.push(field("wait event", crate::text::one_line(&format!("{kind}/{event}")), Tone::Plain));
    }
    if backend.xact_start.is_some() {
        let wrote = match (backend.backend_xid, write_knowledge(&context.view.graph, backend)) {
            (Some(xid), WriteKnowledge::ForLock) => {
                format!("; has xid {xid} for the lock that it waits for, and may have written")
            }
            (Some(xid), _) => format!("; has xid {xid} and may have written"),
            (None, _) => "; has written nothing".to_owned(),
        };
        let began = ago(context, backend.xact_start);
        lines.push(field("transaction", format!("began {began}{wrote}"), Tone::Plain));
    }
    lines.extend(host_lost(context, backend));
    lines.push(fields(&[
        ("xmin", number(backend.backend_xmin)),
        ("query id", backend.query_id.map(|id| id.to_string()).unwrap_or_default()),
        ("leader", backend.leader_pid.map(|pid| pid.to_string()).unwrap_or_default()),
    ]));
    lines.retain(|line| line.spans.len() > 1);
    lines
}

/// ` for 3m12s, since 13:59:19`, if known.
fn since(context: &Context<'_>, at: Option<crate::model::Timestamp>) -> String {
    match (at, context.age(at)) {
        (Some(at), Some(age)) => {
            format!(" for {}, since {}", crate::text::duration(age), context.time_of_day(at))
        }
        _ => String::new(),
    }
}

fn explain_type(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "autovacuum worker" => {
            "it will start again; one \"to prevent wraparound\" is not canceled automatically"
        }
        "walsender" => "sends WAL to a standby or a subscriber",
        "startup" => "replays WAL on a standby: the cause is on the primary",
        "parallel worker" => "part of a parallel query: terminate its leader instead",
        "logical replication worker" => "applies changes of a subscription; it will start again",
        _ => return None,
    })
}

/// The statement that terminates a root. Processes without a client have none: they start again.
fn remedy(context: &Context<'_>, backend: &Backend) -> Option<Line> {
    context.root(Party::Backend(backend.pid))?;
    let client = backend.backend_type.as_deref().is_none_or(|kind| kind == "client backend");
    client.then(|| field("to end it", format!("SELECT pg_terminate_backend({});", backend.pid), Tone::Key))
}

/// A session-level lock that other sessions wait for, and that the current statement is not related to.
fn keeps(context: &Context<'_>, subject: Party) -> Option<Line> {
    let view = SnapshotView { view: context.view, snapshot: context.snapshot };
    let (tag, _) = view.kept_key(subject)?;
    let kept = context.lock_label(&tag, Some(subject.pid()));
    let words = format!(
        "{kept} by its session, while it runs other statements, in a pool those of other clients; the query below did not take it"
    );
    Some(field("keeps", words, Tone::Warning))
}

/// Whether the role may terminate it, or what it lacks. Nothing is shown for processes that no role may terminate.
fn rights(context: &Context<'_>, backend: &Backend) -> Option<Line> {
    let rights = context.view.rights.as_deref()?;
    let (owner, kind) = (backend.user.as_deref(), backend.backend_type.as_deref());
    if owner.is_none() && kind.is_some_and(|kind| kind != "autovacuum worker") {
        return None;
    }
    Some(match rights.lacks(Verb::Terminate, owner, kind) {
        None => field("this role", "can cancel and terminate it", Tone::Plain),
        Some(lack) => field("this role", lack.words, Tone::Warning),
    })
}

fn waiting(context: &Context<'_>, subject: Party) -> Vec<Line> {
    let Some((queue, place)) = context.view.graph.wait_of(subject) else { return Vec::new() };
    let Some(waiter) = queue.waiters.get(place) else { return Vec::new() };
    let what = context.wait_label(&queue.tag, waiter.pid);
    let age =
        context.wait_age(waiter.wait_start).map_or_else(|| "just now".to_owned(), crate::text::duration);
    let mut lines =
        vec![field("waits for", format!("{} on {what}, {age}", waiter.mode.as_str()), Tone::Warning)];
    let places = queue.waiters.len();
    if places > 1 {
        lines.push(field("in the queue", format!("place {} of {places}", place + 1), Tone::Plain));
    }
    let edges = context.view.graph.blockers_of(subject);
    for edge in edges.iter().take(6) {
        let why = match edge.kind {
            EdgeKind::Holder => "holds it",
            EdgeKind::Queue => "is ahead in the queue",
        };
        lines.push(field("behind", format!("{}, which {why}", party(context, edge.blocker)), Tone::Plain));
    }
    if edges.len() > 6 {
        lines.push(field("", format!("and {} more", edges.len() - 6), Tone::Dim));
    }
    if context.view.graph.cycles.iter().any(|cycle| cycle.contains(&subject)) {
        let timeout = context.snapshot.server().and_then(|server| server.deadlock_timeout);
        let timeout =
            timeout.map(|timeout| format!(", {} unless it set another", crate::text::duration(timeout)));
        let breaks = "part of a deadlock; the server breaks it when one of its sessions has waited for deadlock_timeout";
        lines.push(field("", format!("{breaks}{}", timeout.unwrap_or_default()), Tone::Critical));
    }
    lines
}

fn query(context: &Context<'_>, backend: &Backend, width: usize) -> Vec<Line> {
    let Some(query) = backend.query.as_ref().filter(|query| query.bytes() > 0) else { return Vec::new() };
    let active = backend.state == Some(crate::model::backend::State::Active);
    let began = ago(context, backend.query_start);
    let what = if active { "Query" } else { "Last query" };
    let mut lines = vec![heading(format!("{what}, began {began}"))];
    let pieces = crate::text::lines(&shown(Channel::Screen, query), width.saturating_sub(2).max(10));
    lines.extend(pieces.into_iter().map(|line| Line::new().with(format!("  {line}"), Tone::Plain)));
    let size = context.snapshot.server().map_or(0, |server| server.query_size as usize);
    // The server keeps one byte less than the size, and cuts at a character boundary (pgstat_clip_activity).
    if size > 0 && query.bytes() + 4 >= size {
        let note = format!("  truncated by the server (track_activity_query_size = {size} bytes)");
        lines.push(Line::new().with(note, Tone::Dim));
    }
    lines
}

fn below(context: &Context<'_>, subject: Party) -> Vec<Line> {
    let behind = context.view.graph.directly_behind(subject);
    if behind.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading(format!("Directly behind it: {}", behind.len()))];
    let nodes: Vec<_> = behind.iter().filter_map(|party| context.node(*party)).collect();
    lines.extend(listed(&nodes, |(_, child)| {
        let wait = context.waiter_at(child).map(|(_, waiter)| waiter);
        let age = wait.and_then(|waiter| context.wait_age(waiter.wait_start)).map(crate::text::duration);
        let blocks = context.blocked(child.party);
        let behind = if blocks > 0 { format!(", blocks {blocks}") } else { String::new() };
        let mode = wait.map_or("", |waiter| waiter.mode.short());
        let who = party(context, child.party);
        let text = format!("  {who} waits {}  {mode}{behind}", age.unwrap_or_default());
        Line::new().with(text, Tone::Plain)
    }));
    lines.push(Line::new());
    lines
}

fn held<'a>(context: &Context<'_>, locks: impl Iterator<Item = &'a Lock>) -> Vec<Line> {
    // Every session holds locks on its own transaction: these are omitted unless another session waits for them.
    let own = |lock: &Lock| {
        let is_transaction = matches!(lock.tag.locktype(), LockType::VirtualXid | LockType::TransactionId);
        is_transaction && context.queue(&lock.tag).is_none()
    };
    let mut locks: Vec<&Lock> = locks.filter(|lock| lock.granted && !own(lock)).collect();
    if locks.is_empty() {
        return vec![heading("Holds no locks")];
    }
    let waiters = |lock: &Lock| context.queue(&lock.tag).map_or(0, |queue| queue.waiters.len());
    locks.order_by_cached_key(|lock| (Reverse(waiters(lock)), lock.tag));
    let mut lines = vec![heading(match locks.len() {
        1 => "Holds one lock".to_owned(),
        count => format!("Holds {count} locks"),
    })];
    lines.extend(listed(&locks, |lock| {
        let line = Line::new().with(format!("  {:<20} ", lock.mode.short()), Tone::Plain);
        let line = line.with(context.lock_label(&lock.tag, lock.pid), Tone::Plain);
        match waiters(lock) {
            0 => line,
            count => line.with(format!("   {count} waiting"), Tone::Warning),
        }
    }));
    lines
}

pub(in crate::app::panes) fn prepared(context: &Context<'_>, xact: VirtualTransaction) -> Option<Vec<Line>> {
    let row = context.prepared(xact)?;
    let gid = crate::text::literal(&row.gid);
    let mut lines = vec![
        field("gid", crate::text::one_line(&row.gid), Tone::Plain),
        fields(&[("owner", words(row.owner.as_ref())), ("database", words(row.database.as_ref()))]),
        field("prepared", ago(context, row.prepared), Tone::Warning),
        field(
            "",
            "it has no process: it holds its locks until it is committed or rolled back",
            Tone::Warning,
        ),
        field("to end it", format!("ROLLBACK PREPARED {gid};"), Tone::Key),
        field("or", format!("COMMIT PREPARED {gid};   (as its owner, in its database)"), Tone::Key),
    ];
    lines.extend(consequence(context, Party::Prepared(xact)));
    lines.push(Line::new());
    lines.extend(below(context, Party::Prepared(xact)));
    let locks = context.snapshot.locks.last_rows().iter();
    lines.extend(held(context, locks.filter(|lock| lock.pid.is_none() && lock.virtualtransaction == xact)));
    Some(lines)
}
