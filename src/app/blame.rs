//! What the Blame screen shows of what was counted: over which time, by what, and the episodes of which line.

use crate::model::blame::{Blame, Group, Row, Span};

/// The lines of the Blame screen.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// By what roots are taken together.
    pub group: Group,
    /// How far back from the last look waits count.
    pub span: Span,
    /// A row for each group, the most expensive first.
    pub rows: Vec<Row>,
    /// The row whose episodes are listed; none: those of all.
    pub of: Option<u64>,
    /// The numbers of those episodes, in the order in which they began.
    pub episodes: Vec<u64>,
}

impl Shown {
    /// Takes the rows anew from what was counted.
    pub fn take_rows(&mut self, blame: &Blame, group: Group, span: Span) {
        (self.group, self.span) = (group, span);
        self.rows = blame.by(group, span);
    }

    /// Takes the episodes of a row anew, or of all.
    pub fn take_episodes(&mut self, blame: &Blame, of: Option<u64>) {
        self.of = of;
        let row = of.and_then(|of| self.row(of));
        let episodes = blame.episodes_in(self.span);
        let wanted = episodes.filter(|episode| row.is_none_or(|row| row.has(episode)));
        self.episodes = wanted.map(|episode| episode.number).collect();
    }

    /// A row by what tells it from the others.
    pub fn row(&self, id: u64) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }
}
