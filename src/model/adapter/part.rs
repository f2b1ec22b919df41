words! {
    /// A kind of rows of an installation, with its own queries.
    #[derive(strum::EnumString)]
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
}

impl Part {
    pub const JOBS: [Self; 5] = [Self::Running, Self::Due, Self::Scheduled, Self::Blocked, Self::Failed];
    /// All parts but those of jobs.
    pub const OTHERS: [Self; 5] = [Self::Workers, Self::Depth, Self::Paused, Self::Leases, Self::Schedules];

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
