use crate::model::blame::{Blame, Group, Row, Span};

#[derive(Debug, Clone, Default)]
pub struct Shown {
    pub group: Group,
    /// Time span before the last poll in which waits count.
    pub span: Span,
    pub rows: Vec<Row>,
    /// The row whose episodes are listed; `None` for all rows.
    pub of: Option<u64>,
    pub episodes: Vec<u64>,
}

impl Shown {
    pub fn take_rows(&mut self, blame: &Blame, group: Group, span: Span) {
        (self.group, self.span) = (group, span);
        self.rows = blame.by(group, span);
    }

    pub fn take_episodes(&mut self, blame: &Blame, of: Option<u64>) {
        self.of = of;
        let row = of.and_then(|of| self.row(of));
        let episodes = blame.episodes_in(self.span);
        let wanted = episodes.filter(|episode| row.is_none_or(|row| row.has(episode)));
        self.episodes = wanted.map(|episode| episode.number).collect();
    }

    pub fn row(&self, id: u64) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }
}
