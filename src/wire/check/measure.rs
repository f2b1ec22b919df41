//! What can be checked: a number of a look, its unit, and from when on it is trouble.

use super::range::Range;
use crate::model::Timestamp;
use crate::model::adapter::{InstallationRows, Part, Parts, QueueRow, QueueState};
use crate::model::backend::{Backend, State};
use crate::model::finding::Finding;
use crate::model::id_generator;
use crate::model::lease::LeaseState;
use crate::model::output::Channel;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::systems::TableRows;
use crate::model::takers;
use crate::model::task::{TaskRow, TaskState};
use crate::model::view::View;
use crate::model::wait_graph::{Party, Root};

/// What a measure of a look is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, and what it is about: one line, empty where there is nothing.
    Known(f64, String),
    /// What it is made from could not be read.
    Unknown(String),
    /// There is nothing to measure: no table of that kind, no Redis.
    Absent,
}

/// Something that can be checked at one look.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Its name on the command line and in the output: `[a-z_]+`.
    pub name: &'static str,
    /// `s`, `%`, `c` for a counter, or nothing.
    pub unit: &'static str,
    /// From when on it is a warning where nobody says otherwise.
    pub warning: Option<Range>,
    /// From when on it is critical.
    pub critical: Option<Range>,
    /// Reads the number in a look and its snapshot.
    pub read: fn(&View, &Snapshot) -> Value,
}

const fn measure(
    name: &'static str,
    unit: &'static str,
    limits: (Option<f64>, Option<f64>),
    read: fn(&View, &Snapshot) -> Value,
) -> Measure {
    const fn above(limit: Option<f64>) -> Option<Range> {
        match limit {
            Some(limit) => Some(Range::above(limit)),
            None => None,
        }
    }
    Measure { name, unit, warning: above(limits.0), critical: above(limits.1), read }
}

/// The parts of job systems of others that these are made of.
pub fn measured() -> Parts {
    Parts::of(&[Part::Workers, Part::Running, Part::Due, Part::Depth, Part::Paused])
}

/// All of them; what only time or several looks tell, `connect` and `blocked_seconds`, is added by who looks.
pub const MEASURES: [Measure; 23] = [
    measure("waiting", "", (None, None), |view, snapshot| {
        locks(snapshot, || Value::Known(f64::from(view.graph.waiting), about(view, &ROOTS)))
    }),
    measure("longest_wait", "s", (Some(30.0), Some(300.0)), longest_wait),
    measure("worst_root", "", (Some(3.0), Some(10.0)), |view, snapshot| {
        root(view, snapshot, |root| Some(f64::from(root.blocked)))
    }),
    measure("root_age", "s", (Some(60.0), Some(300.0)), |view, snapshot| {
        root(view, snapshot, |root| age(snapshot, root.longest_wait))
    }),
    measure("idle_root", "s", (Some(60.0), Some(300.0)), idle_root),
    measure("cycles", "", (None, Some(0.0)), |view, snapshot| locks(snapshot, || of_check(view, "cycle"))),
    measure("deadlocks", "c", (None, None), deadlocks),
    measure("prepared", "s", (Some(300.0), Some(3600.0)), prepared),
    measure("forgotten", "s", (Some(600.0), Some(3600.0)), forgotten),
    measure("tasks_orphan", "", (Some(0.0), Some(4.0)), |view, snapshot| {
        tasks(view, snapshot, &[TaskState::Orphan])
    }),
    measure("tasks_overdue", "", (Some(0.0), Some(4.0)), |view, snapshot| {
        tasks(view, snapshot, &[TaskState::Overdue])
    }),
    measure("tasks_slow", "", (Some(0.0), Some(4.0)), |view, snapshot| {
        tasks(view, snapshot, &[TaskState::Slow, TaskState::MaybeSlow])
    }),
    measure("tasks_failed", "", (Some(0.0), None), |view, snapshot| {
        tasks(view, snapshot, &[TaskState::Failed])
    }),
    measure("types_unserved", "", (None, None), types_unserved),
    measure("jobs_lost", "", (Some(0.0), Some(4.0)), jobs_lost),
    measure("jobs_unserved", "", (Some(0.0), None), jobs_unserved),
    measure("leases_expired", "", (Some(0.0), None), leases),
    measure("queue_oldest", "s", (Some(600.0), None), |view, snapshot| {
        queue(snapshot, || {
            let oldest = view.queue.depth.oldest_pending_at;
            Value::Known(age(snapshot, oldest).unwrap_or_default(), String::new())
        })
    }),
    measure("queue_pending", "", (None, None), |view, snapshot| {
        queue(snapshot, || counted(view.queue.depth.pending.count))
    }),
    measure("queue_failed", "", (Some(0.0), None), |view, snapshot| {
        queue(snapshot, || counted(view.queue.depth.failed.count))
    }),
    measure("id_ahead", "s", (Some(1.0), None), id_ahead),
    measure("redis_down", "", (Some(0.0), None), redis_down),
    measure("connections", "%", (Some(80.0), Some(95.0)), connections),
];

fn known(number: u32) -> Value {
    Value::Known(f64::from(number), String::new())
}

/// A count; beyond 2^53 nobody counts.
#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
fn counted(number: u64) -> Value {
    Value::Known(number as f64, String::new())
}

fn stale<T>(section: &Section<T>, what: &str) -> Option<Value> {
    let error = section.error.as_ref()?;
    Some(Value::Unknown(format!("{what} cannot be read: {}", crate::text::one_line(error))))
}

/// The first of these sections that is old.
fn first_stale<'a, T: 'a>(tables: impl IntoIterator<Item = &'a TableRows<T>>) -> Option<Value> {
    tables.into_iter().find_map(|table| stale(&table.section, &table.source.name))
}

/// What was counted; nothing, where some of it could not be read, is not known.
fn unless_unread(counted: Value, unread: Option<Value>) -> Value {
    match (counted, unread) {
        (Value::Known(count, _), Some(unread)) if count <= 0.0 => unread,
        (counted, _) => counted,
    }
}

fn locks(snapshot: &Snapshot, read: impl FnOnce() -> Value) -> Value {
    stale(&snapshot.locks, "pg_locks").unwrap_or_else(read)
}

/// Of the sessions; where the role does not see those of others it is not known.
fn sessions(snapshot: &Snapshot, read: impl FnOnce() -> Value) -> Value {
    if let Some(stale) = stale(&snapshot.backends, "pg_stat_activity") {
        return stale;
    }
    match snapshot.server() {
        Some(server) if !server.sees_all => Value::Unknown(format!(
            "{} does not see the sessions of others: GRANT pg_read_all_stats",
            server.user
        )),
        _ => read(),
    }
}

fn age(snapshot: &Snapshot, since: Option<Timestamp>) -> Option<f64> {
    Some((snapshot.taken_at - since?).as_seconds_f64().max(0.0))
}

/// The finding of a check that is worst tells who it is.
fn about(view: &View, checks: &[&str]) -> String {
    let finding = view.findings.iter().find(|finding| checks.contains(&finding.check));
    finding.map(words).unwrap_or_default()
}

fn words(finding: &Finding) -> String {
    let about = finding.about_in(Channel::Check);
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    format!("{}{about}", finding.short)
}

fn of_check(view: &View, check: &str) -> Value {
    let count = view.findings.iter().filter(|finding| finding.check == check).count();
    Value::Known(f64::from(u32::try_from(count).unwrap_or(u32::MAX)), about(view, &[check]))
}

/// The checks that tell whom to end: a root, or a request in line that frees more.
const ROOTS: [&str; 3] = ["root_blocker", "prepared_transaction", "convoy"];

fn longest_wait(view: &View, snapshot: &Snapshot) -> Value {
    locks(snapshot, || {
        let waiters = view.graph.queues.iter().flat_map(|queue| &queue.waiters);
        let first =
            waiters.filter(|waiter| waiter.wait_start.is_some()).min_by_key(|waiter| waiter.wait_start);
        let about = match (about(view, &["long_wait"]), first) {
            (about, Some(first)) if about.is_empty() => first.pid.to_string(),
            (about, _) => about,
        };
        Value::Known(age(snapshot, first.and_then(|first| first.wait_start)).unwrap_or_default(), about)
    })
}

/// Jobs of other systems that have lost their worker. What could not be read may have some.
fn jobs_lost(view: &View, snapshot: &Snapshot) -> Value {
    let running = || snapshot.adapters.iter().filter_map(|rows| rows.jobs.get(&Part::Running));
    if running().next().is_none() {
        return Value::Absent;
    }
    let lost = view.adapters.rows.iter().filter(|row| row.judged.state.is_lost()).count();
    let unread = running().find_map(|read| stale(&read.section, "the jobs of another system"));
    let count = f64::from(u32::try_from(lost).unwrap_or(u32::MAX));
    unless_unread(Value::Known(count, about(view, &["adapter_job"])), unread)
}

/// Types of work that is due and that no worker of locktop's schema takes.
fn types_unserved(view: &View, snapshot: &Snapshot) -> Value {
    let mut workers = takers::tables(snapshot).peekable();
    if workers.peek().is_none() {
        return Value::Absent;
    }
    let unread = workers.find_map(|table| stale(&table.section, &table.source.name));
    unread.unwrap_or_else(|| locks(snapshot, || of_check(view, "unserved_type")))
}

/// Systems with jobs that are due, and no worker that lives or is connected.
fn jobs_unserved(view: &View, snapshot: &Snapshot) -> Value {
    let has_presence = |rows: &InstallationRows| rows.installation.adapter.evidence.has_presence;
    let says_who = |rows: &InstallationRows| {
        rows.workers.section.taken_at.is_some()
            || rows.workers.section.error.is_some()
            || (has_presence(rows) && rows.jobs.values().any(|read| read.section.taken_at.is_some()))
    };
    let mut all = snapshot.adapters.iter().enumerate().filter(|(_, rows)| says_who(rows)).peekable();
    if all.peek().is_none() {
        return Value::Absent;
    }
    // Jobs are due for long, and whether a worker is connected cannot be seen.
    let unseen = |(place, rows): (usize, &InstallationRows)| {
        let is_unseen =
            has_presence(rows) && rows.sessions.is_none() && rows.workers.section.taken_at.is_none();
        let is_late = |row: &QueueRow| row.place == place && row.state == QueueState::Overdue;
        (is_unseen && view.adapters.queues.iter().any(is_late)).then(|| {
            let name = crate::text::one_line(&rows.installation.label()).into_owned();
            Value::Unknown(format!("{name}: not all sessions can be seen, so that its workers are not known"))
        })
    };
    let unread = all.find_map(|(place, rows)| {
        stale(&rows.workers.section, "the workers of another system").or_else(|| unseen((place, rows)))
    });
    unless_unread(of_check(view, "adapter_queue"), unread)
}

/// The greatest of all roots, but those that the config expects; and what is said of the worst.
fn root(view: &View, snapshot: &Snapshot, read: impl Fn(&Root) -> Option<f64>) -> Value {
    locks(snapshot, || {
        let expected = |party: Party| {
            let mut findings = view.findings.iter();
            findings.any(|finding| finding.expected.is_some() && finding.is_about(party))
        };
        let roots = view.graph.roots.iter().filter(|root| !expected(root.party));
        let most = roots.filter_map(read).fold(0.0, f64::max);
        Value::Known(most, about(view, &ROOTS))
    })
}

fn idle_root(view: &View, snapshot: &Snapshot) -> Value {
    sessions(snapshot, || {
        let idle = |root: &Root| {
            let backend = view.index.backend(snapshot, root.party.pid())?;
            let state = backend.state.filter(|state| state.is_idle_in_transaction() || *state == State::Idle);
            state.and_then(|_| age(snapshot, backend.state_change))
        };
        root(view, snapshot, idle)
    })
}

fn deadlocks(_: &View, snapshot: &Snapshot) -> Value {
    match (stale(&snapshot.server, "the server's state"), snapshot.server()) {
        (Some(stale), _) => stale,
        (None, Some(server)) => counted(server.deadlocks),
        (None, None) => Value::Absent,
    }
}

fn prepared(_: &View, snapshot: &Snapshot) -> Value {
    if let Some(stale) = stale(&snapshot.prepared, "pg_prepared_xacts") {
        return stale;
    }
    let oldest =
        snapshot.prepared.rows.iter().filter(|row| row.prepared.is_some()).min_by_key(|row| row.prepared);
    let about = oldest.map_or_else(String::new, |row| crate::text::one_line(&row.gid).into_owned());
    Value::Known(age(snapshot, oldest.and_then(|row| row.prepared)).unwrap_or_default(), about)
}

fn forgotten(_: &View, snapshot: &Snapshot) -> Value {
    sessions(snapshot, || {
        let idle = |row: &&Backend| row.state.is_some_and(State::is_idle_in_transaction);
        let oldest = snapshot.backends.rows.iter().filter(idle).min_by_key(|row| row.state_change);
        let who = |row: &Backend| {
            let user = row.user.as_deref().unwrap_or_default();
            format!("{} {user}", row.pid)
        };
        let since = oldest.and_then(|row| row.state_change);
        Value::Known(age(snapshot, since).unwrap_or_default(), oldest.map(who).unwrap_or_default())
    })
}

fn tasks(view: &View, snapshot: &Snapshot, states: &[TaskState]) -> Value {
    if snapshot.task_sets.is_empty() {
        return Value::Absent;
    }
    let unread = snapshot.task_sets.iter().find_map(|set| {
        let name = &set.tables.schedules;
        let log = set.tables.executions.as_deref().unwrap_or(name);
        stale(&set.tasks, name).or_else(|| stale(&set.executions, log))
    });
    // Whether somebody works on one is told by the locks.
    locks(snapshot, || {
        let rows = || view.tasks.rows.iter().filter(|row| states.contains(&row.state));
        let count = rows().count();
        // The one that is so for longest: it has run, or been due, since then.
        let since =
            |row: &TaskRow| row.age(snapshot).or_else(|| Some(-row.due_in(snapshot)?)).unwrap_or(f64::MIN);
        let first = rows().max_by(|a, b| since(a).total_cmp(&since(b)));
        let first = first.map_or_else(String::new, |row| row.name(snapshot).to_string());
        let about = if count > 1 { format!("{first} and {} more", count - 1) } else { first };
        unless_unread(Value::Known(f64::from(u32::try_from(count).unwrap_or(u32::MAX)), about), unread)
    })
}

fn leases(view: &View, snapshot: &Snapshot) -> Value {
    if snapshot.systems.leases.is_empty() && snapshot.systems.redis.rows.is_empty() {
        return Value::Absent;
    }
    let expired = known(view.leases.counts.of(LeaseState::Expired));
    unless_unread(expired, first_stale(&snapshot.systems.leases))
}

fn queue(snapshot: &Snapshot, read: impl FnOnce() -> Value) -> Value {
    if snapshot.systems.counts.is_empty() {
        return Value::Absent;
    }
    first_stale(&snapshot.systems.counts).unwrap_or_else(read)
}

fn id_ahead(_: &View, snapshot: &Snapshot) -> Value {
    if snapshot.systems.generators.is_empty() {
        return Value::Absent;
    }
    let rows = id_generator::rows(snapshot);
    let ahead = Value::Known(rows.filter_map(|row| row.ahead).fold(0.0, f64::max), String::new());
    unless_unread(ahead, first_stale(&snapshot.systems.generators))
}

fn redis_down(view: &View, snapshot: &Snapshot) -> Value {
    if snapshot.systems.redis.servers.is_empty() {
        return Value::Absent;
    }
    of_check(view, "redis_down")
}

fn connections(_: &View, snapshot: &Snapshot) -> Value {
    match snapshot.server() {
        Some(server) if server.max_connections > 0 => {
            let share = f64::from(server.connections) / f64::from(server.max_connections) * 100.0;
            Value::Known(share, format!("{} of {}", server.connections, server.max_connections))
        }
        _ => Value::Absent,
    }
}
