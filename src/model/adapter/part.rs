use strum::{EnumString, IntoStaticStr, VariantArray};

/// A kind of rows of an installation, with its own queries.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray, EnumString,
)]
#[strum(serialize_all = "snake_case")]
pub enum Part {
    Workers,
    Running,
    /// `[[jobs.due]]`: the next jobs that may be started now.
    Due,
    /// `[[jobs.scheduled]]`: jobs that are not due yet, including retries.
    Scheduled,
    /// `[[jobs.blocked]]`: jobs that wait for something to end.
    Blocked,
    /// `[[jobs.failed]]`: jobs that are not retried.
    Failed,
    Depth,
    Paused,
    /// `[[leases]]`: a leader, a semaphore, a lock in a row.
    Leases,
    /// `[[schedules]]`: what starts jobs by the clock.
    Schedules,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Text,
    Int,
    Number,
    Time,
    Bool,
}

impl ValueKind {
    pub fn sql(self) -> &'static str {
        match self {
            Self::Text => "pg_catalog.text",
            Self::Int => "pg_catalog.int8",
            Self::Number => "pg_catalog.float8",
            Self::Time => "pg_catalog.timestamptz",
            Self::Bool => "pg_catalog.bool",
        }
    }
}

/// An output column: its name, its kind, and whether it is required.
pub type Column = (&'static str, ValueKind, bool);

use ValueKind::{Bool, Int, Number, Text, Time};

const JOBS: &[Column] = &[
    ("id", Text, true),
    ("state", Text, true),
    ("name", Text, false),
    ("queue", Text, false),
    ("priority", Int, false),
    ("attempt", Int, false),
    ("max_attempts", Int, false),
    ("due_at", Time, false),
    ("started_at", Time, false),
    ("finished_at", Time, false),
    ("limit_s", Number, false),
    ("worker", Text, false),
    ("lock_key", Int, false),
    ("lock_class", Int, false),
    ("lock_obj", Int, false),
    ("backend_pid", Int, false),
    ("beat_at", Time, false),
    ("lease_until", Time, false),
    ("blocked_by", Text, false),
    ("error", Text, false),
    ("note", Text, false),
    ("concurrency_key", Text, false),
    ("stuck", Text, false),
];
const WORKERS: &[Column] = &[
    ("id", Text, true),
    ("name", Text, false),
    ("host", Text, false),
    ("kind", Text, false),
    ("queues", Text, false),
    ("pid", Int, false),
    ("capacity", Int, false),
    ("busy", Int, false),
    ("started_at", Time, false),
    ("beat_at", Time, false),
    ("stopped_at", Time, false),
    ("beat_limit_s", Number, false),
    ("lock_key", Int, false),
    ("backend_pid", Int, false),
    ("sessions", Int, false),
];
const DEPTH: &[Column] = &[
    ("queue", Text, false),
    ("state", Text, true),
    ("number", Int, true),
    ("is_estimate", Bool, false),
    ("oldest_at", Time, false),
];
const PAUSED: &[Column] = &[("queue", Text, true), ("since", Time, false)];
const LEASES: &[Column] = &[
    ("id", Text, true),
    ("owner", Text, false),
    ("token", Text, false),
    ("note", Text, false),
    ("acquired_at", Time, false),
    ("expires_at", Time, false),
    ("is_held", Bool, false),
    ("lock_key", Int, false),
];
const SCHEDULES: &[Column] = &[
    ("id", Text, true),
    ("name", Text, false),
    ("schedule", Text, false),
    ("queue", Text, false),
    ("next_run_at", Time, false),
    ("last_run_at", Time, false),
    ("is_enabled", Bool, false),
];

impl Part {
    /// All parts, in the order in which they are read.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name; for jobs the word after `jobs.`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
    pub const JOBS: [Self; 5] = [Self::Running, Self::Due, Self::Scheduled, Self::Blocked, Self::Failed];

    /// The columns it may have, in the order in which they are read.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Workers => WORKERS,
            Self::Depth => DEPTH,
            Self::Paused => PAUSED,
            Self::Leases => LEASES,
            Self::Schedules => SCHEDULES,
            Self::Running | Self::Due | Self::Scheduled | Self::Blocked | Self::Failed => JOBS,
        }
    }

    /// Whether its rows have a state, in the second column.
    pub fn has_states(self) -> bool {
        self == Self::Depth || Self::JOBS.contains(&self)
    }

    /// Seconds between two readings, if no query is expensive. A part that no screen shows is read less often: findings, lock
    /// names and the history still need it.
    pub fn interval(self, is_shown: bool) -> f64 {
        match (self, is_shown) {
            (Self::Workers | Self::Running | Self::Leases, true) => 2.0,
            (Self::Depth, true) => 10.0,
            (Self::Workers | Self::Running, false) | (_, true) => 5.0,
            (_, false) => 30.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts(u16);

impl Parts {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self::of(Part::ALL);

    #[expect(clippy::indexing_slicing, reason = "below its length, and nothing else is const")]
    pub const fn of(parts: &[Part]) -> Self {
        let (mut all, mut at) = (0, 0);
        while at < parts.len() {
            all |= 1 << parts[at] as u16;
            at += 1;
        }
        Self(all)
    }

    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub const fn has(self, part: Part) -> bool {
        self.0 & (1 << part as u16) != 0
    }
}
