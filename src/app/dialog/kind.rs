use super::search::Search;
use crate::model::plan::{Ask, Chosen, Known, RowsOf};

#[derive(Debug, Clone)]
pub enum Kind {
    Sessions(Ask),
    /// Executions of tasks: the server must be queried for them.
    Executions(Box<Search>),
    /// Rows of one kind: each is changed separately.
    Rows(RowsOf),
    /// Expected blockers: nothing is sent to the server.
    Known(Box<Known>),
}

impl From<Chosen> for Kind {
    fn from(chosen: Chosen) -> Self {
        match chosen {
            Chosen::Sessions(ask) => Self::Sessions(ask),
            Chosen::Executions(tasks) => Self::Executions(Box::new(Search::new(tasks))),
            Chosen::Rows(rows) => Self::Rows(rows),
            Chosen::Known(known) => Self::Known(Box::new(known)),
        }
    }
}

impl Kind {
    /// The singular; the plural has an added `s`.
    pub(super) const fn one(&self) -> &'static str {
        match self {
            Self::Sessions(_) => "session",
            Self::Executions(_) => "execution",
            Self::Rows(rows) => rows.one(),
            Self::Known(_) => "blocker",
        }
    }
}
