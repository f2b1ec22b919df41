//! The state of every table.

use super::pane::PaneState;
use super::screen::Pane;

/// One for each pane.
#[derive(Debug, Default)]
pub(super) struct Panes {
    chains: PaneState,
    advisory: PaneState,
    locks: PaneState,
    tasks: PaneState,
    leases: PaneState,
    queue: PaneState,
    limits: PaneState,
    generators: PaneState,
    backends: PaneState,
    events: PaneState,
}

impl Panes {
    pub(super) fn get(&self, pane: Pane) -> &PaneState {
        match pane {
            Pane::Chains => &self.chains,
            Pane::Advisory => &self.advisory,
            Pane::Locks => &self.locks,
            Pane::Tasks => &self.tasks,
            Pane::Leases => &self.leases,
            Pane::Queue => &self.queue,
            Pane::Limits => &self.limits,
            Pane::Generators => &self.generators,
            Pane::Backends => &self.backends,
            Pane::Events => &self.events,
        }
    }

    pub(super) fn get_mut(&mut self, pane: Pane) -> &mut PaneState {
        match pane {
            Pane::Chains => &mut self.chains,
            Pane::Advisory => &mut self.advisory,
            Pane::Locks => &mut self.locks,
            Pane::Tasks => &mut self.tasks,
            Pane::Leases => &mut self.leases,
            Pane::Queue => &mut self.queue,
            Pane::Limits => &mut self.limits,
            Pane::Generators => &mut self.generators,
            Pane::Backends => &mut self.backends,
            Pane::Events => &mut self.events,
        }
    }
}
