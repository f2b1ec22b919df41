use super::range::Range;
use crate::model::adapter::{InstallationRows, Part, Parts, QueueRow, QueueState};
use crate::model::backend::{Backend, State};
use crate::model::finding::Finding;
use crate::model::lease::LeaseState;
use crate::model::lock::Lock;
use crate::model::output::Channel;
use crate::model::section::Observed;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::systems::TableRows;
use crate::model::task::{JobState, TaskRow};
use crate::model::view::View;
use crate::model::wait_graph::{Party, Root};
use crate::model::{Text, Timestamp, id_generator, takers};

#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub value: f64,
    /// The session, task or table concerned: one line, which can be empty.
    pub about: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Name on the command line and in the output: `[a-z_]+`.
    pub name: &'static str,
    /// `s`, `%`, `c` for a counter, or empty.
    pub unit: &'static str,
    pub warning: Option<Range>,
    pub critical: Option<Range>,
    pub read: fn(&View, &Snapshot) -> Observed<Measured>,
}

const fn measure(
    name: &'static str,
    unit: &'static str,
    limits: (Option<f64>, Option<f64>),
    read: fn(&View, &Snapshot) -> Observed<Measured>,
) -> Measure {
    const fn above(limit: Option<f64>) -> Option<Range> {
        match limit {
            Some(limit) => Some(Range::above(limit)),
            None => None,
        }
    }
    Measure { name, unit, warning: above(limits.0), critical: above(limits.1), read }
}

pub fn measured_parts() -> Parts {
    Parts::of(&[Part::Workers, Part::Running, Part::Due, Part::Depth, Part::Paused])
}

/// All measures of one snapshot. `connect` and `blocked_seconds` need time or several snapshots, so the caller adds them.
pub const MEASURES: [Measure; 23] = [
    measure("waiting", "", (None, None), |view, snapshot| {
        locks(snapshot).map(|_| measured(f64::from(view.graph.waiting), about(view, &ROOTS)))
    }),
    measure("longest_wait", "s", (Some(30.0), Some(300.0)), longest_wait),
    measure("worst_root", "", (Some(3.0), Some(10.0)), |view, snapshot| {
        root(view, snapshot, |root| Some(f64::from(root.blocked)))
    }),
    measure("root_age", "s", (Some(60.0), Some(300.0)), |view, snapshot| {
        root(view, snapshot, |root| age(snapshot, root.longest_wait))
    }),
    measure("idle_root", "s", (Some(60.0), Some(300.0)), idle_root),
    measure("cycles", "", (None, Some(0.0)), |view, snapshot| {
        locks(snapshot).map(|_| of_check(view, "cycle"))
    }),
    measure("deadlocks", "c", (None, None), deadlocks),
    measure("prepared", "s", (Some(300.0), Some(3600.0)), prepared),
    measure("forgotten", "s", (Some(600.0), Some(3600.0)), forgotten),
    measure("tasks_orphan", "", (Some(0.0), Some(4.0)), tasks_orphan),
    measure("tasks_overdue", "", (Some(0.0), Some(4.0)), |view, snapshot| {
        tasks(view, snapshot, &[JobState::Overdue])
    }),
    measure("tasks_slow", "", (Some(0.0), Some(4.0)), |view, snapshot| {
        tasks(view, snapshot, &[JobState::Slow, JobState::MaybeSlow])
    }),
    measure("tasks_failed", "", (Some(0.0), None), |view, snapshot| {
        tasks(view, snapshot, &[JobState::GivenUp])
    }),
    measure("types_unserved", "", (None, None), types_unserved),
    measure("jobs_lost", "", (Some(0.0), Some(4.0)), jobs_lost),
    measure("jobs_unserved", "", (Some(0.0), None), jobs_unserved),
    measure("leases_expired", "", (Some(0.0), None), leases),
    measure("queue_oldest", "s", (Some(600.0), None), |view, snapshot| {
        let oldest = match (view.queue.depth.oldest_pending_at, view.queue.depth.pending.count) {
            (None, 0) => plain(0.0),
            (oldest, _) => known(age(snapshot, oldest), "the table has no creation time of pending items"),
        };
        queue(snapshot, oldest)
    }),
    measure("queue_pending", "", (None, None), |view, snapshot| {
        queue(snapshot, Observed::Read(counted(view.queue.depth.pending.count)))
    }),
    measure("queue_failed", "", (Some(0.0), None), |view, snapshot| {
        queue(snapshot, Observed::Read(counted(view.queue.depth.failed.count)))
    }),
    measure("id_ahead", "s", (Some(1.0), None), id_ahead),
    measure("redis_down", "", (Some(0.0), None), redis_down),
    measure("connections", "%", (Some(80.0), Some(95.0)), connections),
];

fn measured(value: f64, about: impl Into<String>) -> Measured {
    Measured { value, about: about.into() }
}

fn plain(value: f64) -> Observed<Measured> {
    Observed::Read(measured(value, ""))
}

fn known(value: Option<f64>, reason: &str) -> Observed<Measured> {
    value.map_or_else(|| Observed::Unknown(reason.into()), plain)
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
fn counted(number: u64) -> Measured {
    measured(number as f64, "")
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn section<'a, T>(section: &'a Section<T>, what: &str) -> Observed<&'a [T]> {
    match section.observed() {
        Observed::Unknown(reason) => {
            Observed::Unknown(format!("cannot read {what}: {}", crate::text::one_line(&reason)).into())
        }
        observed => observed,
    }
}

fn unread<'a, T: 'a>(snapshot: &Snapshot, tables: &'a [TableRows<T>]) -> Option<Text> {
    let of = |table: &TableRows<T>| section(&table.section, &table.source.name).reason().cloned();
    tables.iter().find_map(of).or_else(|| unsearched(snapshot))
}

fn unsearched(snapshot: &Snapshot) -> Option<Text> {
    section(&snapshot.detection.tables, "the catalog to find tables").reason().cloned()
}

/// The count. A count of zero is not known if a part could not be read.
fn unless_unread(counted: Measured, unread: Option<Text>) -> Observed<Measured> {
    match unread {
        Some(reason) if counted.value <= 0.0 => Observed::Unknown(reason),
        _ => Observed::Read(counted),
    }
}

fn locks(snapshot: &Snapshot) -> Observed<&[Lock]> {
    section(&snapshot.locks, "pg_locks")
}

fn sessions(snapshot: &Snapshot) -> Observed<&[Backend]> {
    match snapshot.server() {
        Some(server) if !server.sees_all => Observed::Unknown(
            format!("{} cannot see the sessions of other roles: GRANT pg_read_all_stats", server.user).into(),
        ),
        _ => section(&snapshot.backends, "pg_stat_activity"),
    }
}

fn age(snapshot: &Snapshot, since: Option<Timestamp>) -> Option<f64> {
    Some((snapshot.taken_at - since?).as_seconds_f64().max(0.0))
}

fn about(view: &View, checks: &[&str]) -> String {
    let finding = view.findings.iter().find(|finding| checks.contains(&finding.check));
    finding.map(words).unwrap_or_default()
}

fn words(finding: &Finding) -> String {
    let about = finding.about_in(Channel::Check);
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    format!("{}{about}", finding.short)
}

fn of_check(view: &View, check: &str) -> Measured {
    let number = view.findings.iter().filter(|finding| finding.check == check).count();
    measured(count(number), about(view, &[check]))
}

/// The checks that name the session to terminate: a root, or a queued request whose end frees more.
const ROOTS: [&str; 3] = ["root_blocker", "prepared_transaction", "convoy"];

fn longest_wait(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    locks(snapshot).map(|_| {
        let queues = view.graph.queues.iter().filter(|queue| !view.is_by_design(queue));
        let waiters = queues.flat_map(|queue| &queue.waiters);
        let first =
            waiters.filter(|waiter| waiter.wait_start.is_some()).min_by_key(|waiter| waiter.wait_start);
        let about = first.map(|first| {
            let mut findings = view.findings.iter().filter(|finding| finding.check == "long_wait");
            let own = findings.find(|finding| finding.is_about(first.party));
            own.map_or_else(|| party_name(view, first.party), words)
        });
        let about = about.unwrap_or_default();
        // A wait that has just begun can have no start time yet; it is younger than any other.
        measured(first.and_then(|first| age(snapshot, first.wait_start)).unwrap_or(0.0), about)
    })
}

/// A count over all other job systems that have these parts. A count of zero is not known if a part could not be read.
fn of_systems(snapshot: &Snapshot, parts: &[Part], counted: impl FnOnce() -> Measured) -> Observed<Measured> {
    let search =
        || section(&snapshot.detection.adapters, "the catalog to find job systems").reason().cloned();
    snapshot.installations().and_then(|all| {
        let states =
            || all.iter().flat_map(|rows| parts.iter().map(move |part| (rows, part, rows.observed(*part))));
        if states().all(|(_, _, state)| state == Observed::Absent) {
            return search().map_or(Observed::Absent, Observed::Unknown);
        }
        let unread = states().find_map(|(rows, part, state)| {
            let label = crate::text::one_line(&rows.installation.label()).into_owned();
            state.reason().map(|reason| format!("{label}: cannot read {}: {reason}", part.as_str()).into())
        });
        unless_unread(counted(), unread.or_else(search))
    })
}

/// Jobs of other systems that lost their worker. Zero is not known while it is undecided whether the worker of a job is
/// alive.
fn jobs_lost(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    let lost = of_systems(snapshot, &[Part::Running], || {
        let lost = view.adapters.rows.iter().filter(|row| row.judged.state.is_lost()).count();
        measured(count(lost), about(view, &["adapter_job"]))
    });
    lost.and_then(|lost| {
        let undecided = view.adapters.rows.iter().filter(|row| row.judged.is_undecided()).count();
        let reason = || format!("{undecided} jobs: not known yet whether their worker is alive").into();
        unless_unread(lost, (undecided > 0).then(reason))
    })
}

fn types_unserved(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    let workers = &snapshot.systems.workers;
    if takers::tables(snapshot).next().is_none() {
        return unsearched(snapshot).map_or(Observed::Absent, Observed::Unknown);
    }
    locks(snapshot).and_then(|_| unless_unread(of_check(view, "unserved_type"), unread(snapshot, workers)))
}

fn jobs_unserved(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    let unserved =
        of_systems(snapshot, &[Part::Workers, Part::Due, Part::Depth], || of_check(view, "adapter_queue"));
    // Jobs are overdue, and it cannot be seen whether a worker is connected.
    let unseen = |(place, rows): (usize, &InstallationRows)| {
        let has_presence = rows.installation.adapter.evidence.has_presence;
        let is_unseen = has_presence && rows.sessions.is_none() && rows.workers.section.taken_at.is_none();
        let is_late = |row: &QueueRow| row.place == place && row.state == QueueState::Overdue;
        (is_unseen && view.adapters.queues.iter().any(is_late)).then(|| {
            let name = crate::text::one_line(&rows.installation.label()).into_owned();
            format!("{name}: not all sessions are visible, so its workers are not known").into()
        })
    };
    unserved.and_then(|counted| unless_unread(counted, snapshot.adapters.iter().enumerate().find_map(unseen)))
}

/// The finding about this root, or the request at the head of its queue.
fn about_root(view: &View, party: Party) -> String {
    let mut findings = view.findings.iter().filter(|finding| ROOTS.contains(&finding.check));
    let own = findings.clone().find(|finding| finding.is_about(party));
    let behind = || {
        findings.find(|finding| {
            finding.pid().is_some_and(|pid| view.graph.roots_above(Party::Backend(pid)).contains(&party))
        })
    };
    own.or_else(behind).map_or_else(|| party_name(view, party), words)
}

fn party_name(view: &View, party: Party) -> String {
    let name = view.with_snapshot().map(|look| look.party(party)).unwrap_or_default();
    crate::text::one_line(&name).into_owned()
}

/// The maximum over all roots except those that the config expects, with the finding about that root.
fn root(view: &View, snapshot: &Snapshot, read: impl Fn(&Root) -> Option<f64>) -> Observed<Measured> {
    locks(snapshot).map(|_| {
        let expected = |party: Party| {
            let mut findings = view.findings.iter();
            findings.any(|finding| finding.expected.is_some() && finding.is_about(party))
        };
        let is_one = |party: Party| !expected(party) && view.standby(party).is_none();
        let roots = view.graph.roots.iter().filter(|root| is_one(root.party));
        let values = roots.filter_map(|root| Some((read(root)?, root.party)));
        let most = values.max_by(|one, other| one.0.total_cmp(&other.0));
        most.map_or_else(|| measured(0.0, ""), |(value, party)| measured(value, about_root(view, party)))
    })
}

fn idle_root(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    sessions(snapshot).and_then(|_| {
        let idle = |root: &Root| {
            let backend = view.index.backend(snapshot, root.party.pid())?;
            let state = backend.state.filter(|state| state.is_idle_in_transaction() || *state == State::Idle);
            state.and_then(|_| age(snapshot, backend.state_change))
        };
        root(view, snapshot, idle)
    })
}

fn deadlocks(_: &View, snapshot: &Snapshot) -> Observed<Measured> {
    section(&snapshot.server, "the state of the server").and_then(|rows| match rows.first() {
        Some(server) if server.deadlocks > 0 || !server.deadlocks_of.is_empty() => {
            Observed::Read(counted(server.deadlocks))
        }
        _ => Observed::Unknown("the databases of the server are not known yet".into()),
    })
}

fn prepared(_: &View, snapshot: &Snapshot) -> Observed<Measured> {
    section(&snapshot.prepared, "pg_prepared_xacts").and_then(|rows| {
        let Some(oldest) = rows.iter().min_by_key(|row| row.prepared) else { return plain(0.0) };
        match age(snapshot, oldest.prepared) {
            Some(seconds) => Observed::Read(measured(seconds, crate::text::one_line(&oldest.gid))),
            None => Observed::Unknown("the start of a prepared transaction is not known".into()),
        }
    })
}

fn forgotten(_: &View, snapshot: &Snapshot) -> Observed<Measured> {
    sessions(snapshot).map(|rows| {
        let idle = |row: &&Backend| row.state.is_some_and(State::is_idle_in_transaction);
        let since = |row: &Backend| age(snapshot, row.state_change);
        let times = rows.iter().filter(idle).filter_map(|row| Some((row, since(row)?)));
        let oldest = times.max_by(|one, other| one.1.total_cmp(&other.1));
        oldest.map_or_else(
            || measured(0.0, ""),
            |(row, seconds)| {
                measured(seconds, format!("{} {}", row.pid, row.user.as_deref().unwrap_or("(no role)")))
            },
        )
    })
}

fn tasks(view: &View, snapshot: &Snapshot, states: &[JobState]) -> Observed<Measured> {
    snapshot.tables(&snapshot.task_sets).and_then(|sets| {
        let unread = sets.iter().find_map(|set| {
            let name = &set.tables.schedules;
            let log = set.tables.executions.as_deref().unwrap_or(name);
            let tasks = section(&set.tasks, name).reason().cloned();
            tasks.or_else(|| section(&set.executions, log).reason().cloned())
        });
        // The locks show whether a worker runs a task.
        locks(snapshot).and_then(|_| {
            let rows = || view.tasks.rows.iter().filter(|row| states.contains(&row.state));
            let number = rows().count();
            // The task that has been in this state longest: it has run, or been due, since then.
            let since = |row: &TaskRow| {
                row.age(snapshot).or_else(|| Some(-row.due_in(snapshot)?)).unwrap_or(f64::MIN)
            };
            let first = rows().max_by(|a, b| since(a).total_cmp(&since(b)));
            let first = first.map_or_else(String::new, |row| row.name(snapshot).to_string());
            let about = if number > 1 { format!("{first} and {} more", number - 1) } else { first };
            unless_unread(measured(count(number), about), unread.or_else(|| unsearched(snapshot)))
        })
    })
}

fn tasks_orphan(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    tasks(view, snapshot, &[JobState::Orphan]).and_then(|orphans| {
        let is_undecided = |row: &&TaskRow| {
            matches!(row.state, JobState::MaybeOrphan | JobState::Settling | JobState::Unknown)
        };
        let first = view.tasks.rows.iter().find(is_undecided);
        let reason = first.map(|row| {
            let name = row.name(snapshot);
            let when =
                row.orphan_in.map(|seconds| format!("; decided in {}", crate::text::duration(seconds)));
            format!("{name}: not known whether its worker is alive{}", when.unwrap_or_default()).into()
        });
        unless_unread(orphans, reason)
    })
}

fn leases(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    let systems = &snapshot.systems;
    let redis = || {
        let down = systems.redis.servers.iter().find_map(|server| Some((server, server.error.as_ref()?)));
        down.map(|(server, error)| Text::from(format!("cannot read Redis {}: {error}", server.server)))
    };
    if systems.leases.is_empty() && systems.redis.servers.is_empty() {
        return unsearched(snapshot).map_or(Observed::Absent, Observed::Unknown);
    }
    let expired = counted(view.leases.count(LeaseState::Expired) as u64);
    unless_unread(expired, unread(snapshot, &systems.leases).or_else(redis))
}

fn queue(snapshot: &Snapshot, counted: Observed<Measured>) -> Observed<Measured> {
    let counts = &snapshot.systems.counts;
    let found = snapshot.tables(counts).and_then(|_| counted);
    found.and_then(|counted| unless_unread(counted, unread(snapshot, counts)))
}

fn id_ahead(_: &View, snapshot: &Snapshot) -> Observed<Measured> {
    let generators = &snapshot.systems.generators;
    snapshot.tables(generators).and_then(|_| {
        let rows = id_generator::rows(snapshot);
        let ahead = measured(rows.filter_map(|row| row.ahead).fold(0.0, f64::max), "");
        unless_unread(ahead, unread(snapshot, generators))
    })
}

fn redis_down(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    if snapshot.systems.redis.servers.is_empty() {
        return Observed::Absent;
    }
    Observed::Read(of_check(view, "redis_down"))
}

fn connections(_: &View, snapshot: &Snapshot) -> Observed<Measured> {
    section(&snapshot.backends, "pg_stat_activity").and_then(|_| match snapshot.server() {
        Some(server) if server.max_connections > 0 => {
            let share = f64::from(server.connections) / f64::from(server.max_connections) * 100.0;
            Observed::Read(measured(share, format!("{} of {}", server.connections, server.max_connections)))
        }
        _ => Observed::Unknown("max_connections is not known".into()),
    })
}
