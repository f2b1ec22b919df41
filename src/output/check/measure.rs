use super::measured::{
    Measured, ROOTS, about, age, count, counted, idle_root, known, locks, longest_wait, measured, of_check,
    plain, root, section, sessions, unless_unread, unread, unsearched,
};
use super::range::Range;
use crate::model::adapter::{InstallationRows, Part, Parts, QueueRow, QueueState};
use crate::model::backend::{Backend, State};
use crate::model::lease::LeaseState;
use crate::model::section::Observed;
use crate::model::snapshot::Snapshot;
use crate::model::task::{JobState, TaskRow};
use crate::model::view::View;
use crate::model::{Text, id_generator, worker_types};

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
        let oldest = match (view.queue.depth.oldest_pending_at, view.queue.depth.pending.number) {
            (None, 0) => plain(0.0),
            (oldest, _) => known(age(snapshot, oldest), "the table has no creation time of pending items"),
        };
        queue(snapshot, oldest)
    }),
    measure("queue_pending", "", (None, None), |view, snapshot| {
        queue(snapshot, Observed::Read(counted(view.queue.depth.pending.number)))
    }),
    measure("queue_failed", "", (Some(0.0), None), |view, snapshot| {
        queue(snapshot, Observed::Read(counted(view.queue.depth.failed.number)))
    }),
    measure("id_ahead", "s", (Some(1.0), None), id_ahead),
    measure("redis_down", "", (Some(0.0), None), redis_down),
    measure("connections", "%", (Some(80.0), Some(95.0)), connections),
];

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
    let workers = &snapshot.sources.workers;
    if worker_types::tables(snapshot).next().is_none() {
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
        let is_unseen = has_presence && rows.sessions.is_none() && rows.workers.taken_at.is_none();
        let is_late = |row: &QueueRow| row.place == place && row.state == QueueState::Overdue;
        (is_unseen && view.adapters.queues.iter().any(is_late)).then(|| {
            let name = crate::text::one_line(&rows.installation.label()).into_owned();
            format!("{name}: not all sessions are visible, so its workers are not known").into()
        })
    };
    unserved.and_then(|counted| unless_unread(counted, snapshot.adapters.iter().enumerate().find_map(unseen)))
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
    let systems = &snapshot.sources;
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
    let counts = &snapshot.sources.counts;
    let found = snapshot.tables(counts).and_then(|_| counted);
    found.and_then(|counted| unless_unread(counted, unread(snapshot, counts)))
}

fn id_ahead(_: &View, snapshot: &Snapshot) -> Observed<Measured> {
    let generators = &snapshot.sources.generators;
    snapshot.tables(generators).and_then(|_| {
        let rows = id_generator::rows(snapshot);
        let ahead = measured(rows.filter_map(|row| row.ahead).fold(0.0, f64::max), "");
        unless_unread(ahead, unread(snapshot, generators))
    })
}

fn redis_down(view: &View, snapshot: &Snapshot) -> Observed<Measured> {
    if snapshot.sources.redis.servers.is_empty() {
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
