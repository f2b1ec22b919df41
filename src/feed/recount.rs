//! Computes blame from stored snapshots without it: those of an older release, and those with hashed names.

use std::sync::Arc;

use crate::model::blame::{Blame, Counter};
use crate::model::finding::Deadlocks;
use crate::model::view::View;

/// Counts snapshot by snapshot. It does not know how an episode ended.
#[derive(Debug, Default)]
pub struct Recount {
    counter: Counter,
    counted: Arc<Blame>,
}

impl Recount {
    /// `refresh` is the usual time between snapshots, in seconds.
    pub fn new(refresh: f64) -> Self {
        let mut counter = Counter::default();
        counter.refresh(refresh);
        Self { counter, counted: Arc::default() }
    }

    /// The blame up to and including a snapshot. Snapshots must come in order.
    pub fn count(&mut self, view: &View) -> Arc<Blame> {
        let look = view.with_snapshot();
        let tick = look.and_then(|look| self.counter.look(look, &Deadlocks::default()));
        if let Some(tick) = tick {
            Arc::make_mut(&mut self.counted).look(tick, &view.graph);
        }
        Arc::clone(&self.counted)
    }
}
