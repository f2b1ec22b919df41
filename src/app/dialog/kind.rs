//! What a question is about, and what can be chosen in it.

use super::known::Expecting;
use super::search::Search;
use crate::model::plan::{Ask, Chosen, RowsOf};

/// To what something is to be done.
#[derive(Debug, Clone)]
pub enum Kind {
    /// To sessions: a signal is sent.
    Sessions(Ask),
    /// To executions of tasks, which the server has to be asked about.
    Executions(Box<Search>),
    /// To rows of one kind: each is changed by itself.
    Rows(RowsOf),
    /// To blockers that are known: nothing is asked of the server.
    Known(Box<Expecting>),
}

impl From<Chosen> for Kind {
    fn from(chosen: Chosen) -> Self {
        match chosen {
            Chosen::Sessions(ask) => Self::Sessions(ask),
            Chosen::Executions(tasks) => Self::Executions(Box::new(Search::new(tasks))),
            Chosen::Rows(rows) => Self::Rows(rows),
            Chosen::Known(known) => Self::Known(Box::new(Expecting::new(known))),
        }
    }
}

impl Kind {
    /// What one is called; several have an `s` more.
    pub(super) const fn one(&self) -> &'static str {
        match self {
            Self::Sessions(_) => "session",
            Self::Executions(_) => "execution",
            Self::Rows(rows) => rows.one(),
            Self::Known(_) => "blocker",
        }
    }
}
