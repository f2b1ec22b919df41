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
    /// `pg_stat_activity`.
    Backends,
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
    /// Backends.
    Backends,
}

impl Screen {
    /// In the order of their keys.
    pub const ALL: [Self; 5] = [Self::Overview, Self::Chains, Self::Locks, Self::Tasks, Self::Backends];

    /// The digit that chooses it.
    #[must_use]
    pub fn digit(self) -> char {
        match self {
            Self::Overview => '1',
            Self::Chains => '2',
            Self::Locks => '3',
            Self::Tasks => '4',
            Self::Backends => '7',
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
            Self::Backends => "Backends",
        }
    }

    /// Its panes, in the order that Tab goes through. `tasks` says whether there are task tables.
    #[must_use]
    pub fn panes(self, tasks: bool) -> &'static [Pane] {
        match self {
            Self::Overview if tasks => &[Pane::Chains, Pane::Advisory, Pane::Tasks],
            Self::Overview => &[Pane::Chains, Pane::Advisory],
            Self::Tasks => &[Pane::Tasks],
            Self::Chains => &[Pane::Chains],
            Self::Locks => &[Pane::Locks],
            Self::Backends => &[Pane::Backends],
        }
    }
}

impl Pane {
    /// Every pane.
    pub const ALL: [Self; 5] = [Self::Chains, Self::Advisory, Self::Locks, Self::Tasks, Self::Backends];

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Chains => "Chains",
            Self::Advisory => "Advisory",
            Self::Locks => "Locks",
            Self::Tasks => "Tasks",
            Self::Backends => "Backends",
        }
    }
}
