//! When each section of a snapshot was read, or why not; kept separately from its rows.

use std::sync::Arc;

use super::columns::flat_rows;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

flat_rows! {
    /// A section without its rows.
    SectionStates of #[derive(Debug, Clone, PartialEq)] SectionState {
        1 taken_at: Option<Timestamp>,
        2 error: Option<Text>,
    }
}

impl SectionState {
    pub(super) fn of<T>(section: &Section<T>) -> Self {
        Self { taken_at: section.taken_at, error: section.error.clone() }
    }
}

pub(super) struct States(std::vec::IntoIter<SectionState>);

impl States {
    pub(super) fn new(states: Vec<SectionState>) -> Self {
        Self(states.into_iter())
    }

    /// The next section, with these rows. Without a state, it was never read.
    pub(super) fn section<T>(&mut self, rows: Vec<T>) -> Section<T> {
        let SectionState { taken_at, error } =
            self.0.next().unwrap_or(SectionState { taken_at: None, error: None });
        Section::restored(Arc::new(rows), taken_at, error)
    }

    /// The next section, without rows. Recordings of earlier releases have no state for it; then it counts as read.
    pub(super) fn later_section<T>(&mut self, at: Timestamp) -> Section<T> {
        match self.0.next() {
            Some(SectionState { taken_at, error }) => Section::restored(Arc::default(), taken_at, error),
            None => Section::fresh(Vec::new(), at),
        }
    }
}
