//! Who made others wait, counted from looks that were kept without it: those of an older program, and those whose names were taken out.

use std::sync::Arc;

use crate::model::blame::{Blame, Counter};
use crate::model::finding::Deadlocks;
use crate::model::view::View;

/// Counts look after look. How an episode ended it does not know.
#[derive(Debug, Default)]
pub struct Recount {
    counter: Counter,
    counted: Arc<Blame>,
}

impl Recount {
    /// For looks that are usually so many seconds apart.
    pub fn new(refresh: f64) -> Self {
        let mut counter = Counter::default();
        counter.refresh(refresh);
        Self { counter, counted: Arc::default() }
    }

    /// What was counted up to a look and with it; they come in their order.
    pub fn count(&mut self, view: &View) -> Arc<Blame> {
        let look = view.with_snapshot();
        let tick = look.and_then(|look| self.counter.look(look, &Deadlocks::default()));
        if let Some(tick) = tick {
            Arc::make_mut(&mut self.counted).look(tick, &view.graph);
        }
        Arc::clone(&self.counted)
    }
}
