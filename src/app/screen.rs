//! Screens and the panes on them.

/// A screen: what the number keys choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Screen {
    /// The most important panes together.
    #[default]
    Overview,
    /// The blocking forest, alone.
    Chains,
    /// Held and awaited locks.
    Locks,
    /// Schedules and executions.
    Tasks,
    /// Locks that end by themselves.
    Leases,
    /// The work queue; rate limits and id generators.
    Queue,
    /// `pg_stat_activity`.
    Backends,
    /// What changed.
    Events,
}

/// A table on a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The blocking forest.
    Chains,
    /// Held advisory locks, those somebody waits for first.
    Advisory,
    /// Held and awaited locks.
    Locks,
    /// Scheduled tasks.
    Tasks,
    /// Leases.
    Leases,
    /// Items of the work queue.
    Queue,
    /// Rate limits.
    Limits,
    /// Id generators.
    Generators,
    /// Backends.
    Backends,
    /// What changed, the newest first.
    Events,
}

/// Which tables a database has.
#[expect(clippy::struct_excessive_bools, reason = "each is a table of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Has {
    /// Scheduled tasks.
    pub tasks: bool,
    /// Leases.
    pub leases: bool,
    /// A lease was seen at some time: until then the Overview has no rows for them.
    pub lease_seen: bool,
    /// A work queue.
    pub queue: bool,
    /// Rate limits.
    pub limits: bool,
    /// Id generators.
    pub generators: bool,
}

impl Screen {
    /// In the order of their keys.
    pub const ALL: [Self; 8] = [
        Self::Overview,
        Self::Chains,
        Self::Locks,
        Self::Tasks,
        Self::Leases,
        Self::Queue,
        Self::Backends,
        Self::Events,
    ];

    /// The digit that chooses it.
    #[must_use]
    pub fn digit(self) -> char {
        match self {
            Self::Overview => '1',
            Self::Chains => '2',
            Self::Locks => '3',
            Self::Tasks => '4',
            Self::Leases => '5',
            Self::Queue => '6',
            Self::Backends => '7',
            Self::Events => '8',
        }
    }

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Chains => "Chains",
            Self::Locks => "Locks",
            Self::Tasks => "Tasks",
            Self::Leases => "Leases",
            Self::Queue => "Queue",
            Self::Backends => "Backends",
            Self::Events => "Events",
        }
    }

    /// Whether it can be gone to.
    #[must_use]
    pub fn is_there(self, has: Has) -> bool {
        match self {
            Self::Tasks => has.tasks,
            Self::Leases => has.leases,
            Self::Queue => has.queue || has.limits || has.generators,
            Self::Overview | Self::Chains | Self::Locks | Self::Backends | Self::Events => true,
        }
    }

    /// Its panes, in the order that Tab goes through.
    #[must_use]
    pub fn panes(self, has: Has) -> &'static [Pane] {
        match self {
            Self::Overview => match (has.tasks, has.leases && has.lease_seen) {
                (true, true) => &[Pane::Chains, Pane::Advisory, Pane::Tasks, Pane::Leases],
                (true, false) => &[Pane::Chains, Pane::Advisory, Pane::Tasks],
                (false, true) => &[Pane::Chains, Pane::Advisory, Pane::Leases],
                (false, false) => &[Pane::Chains, Pane::Advisory],
            },
            Self::Leases => &[Pane::Leases],
            Self::Queue => match (has.queue, has.limits, has.generators) {
                (true, true, true) => &[Pane::Queue, Pane::Limits, Pane::Generators],
                (true, true, false) => &[Pane::Queue, Pane::Limits],
                (true, false, true) => &[Pane::Queue, Pane::Generators],
                (false, true, true) => &[Pane::Limits, Pane::Generators],
                (false, true, false) => &[Pane::Limits],
                (false, false, true) => &[Pane::Generators],
                (_, false, false) => &[Pane::Queue],
            },
            Self::Tasks => &[Pane::Tasks],
            Self::Chains => &[Pane::Chains],
            Self::Locks => &[Pane::Locks],
            Self::Backends => &[Pane::Backends],
            Self::Events => &[Pane::Events],
        }
    }
}

impl Pane {
    /// Every pane.
    pub const ALL: [Self; 10] = [
        Self::Chains,
        Self::Advisory,
        Self::Locks,
        Self::Tasks,
        Self::Leases,
        Self::Queue,
        Self::Limits,
        Self::Generators,
        Self::Backends,
        Self::Events,
    ];

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Chains => "Chains",
            Self::Advisory => "Advisory",
            Self::Locks => "Locks",
            Self::Tasks => "Tasks",
            Self::Leases => "Leases",
            Self::Queue => "Queue",
            Self::Limits => "Rate limits",
            Self::Generators => "Id generators",
            Self::Backends => "Backends",
            Self::Events => "Events",
        }
    }
}
