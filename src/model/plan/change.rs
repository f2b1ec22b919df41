use std::fmt;

use super::context::PlanIndex;
use super::{ActionPlan, PlanContext, TargetKind, rows, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    Gone,
    /// This role can no longer see it.
    Hidden,
    OtherTransaction,
    OtherQuery,
    /// Its session is idle and has run a statement since: a pooled session may now serve another client.
    RanSomething,
    /// Its session serves another client: the application, role or address differs.
    OtherClient,
    NotActive,
    HoldsNotAnyMore,
    BlocksNobody,
    OtherRow,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "has ended",
            Self::Hidden => "is no longer visible to this role",
            Self::OtherTransaction => "its transaction has ended",
            Self::OtherQuery => "its query has ended",
            Self::RanSomething => "has run another statement since then: it may serve another client",
            Self::OtherClient => "now serves another client",
            Self::NotActive => "no longer runs a query",
            Self::HoldsNotAnyMore => "no longer holds that lock",
            Self::BlocksNobody => "no longer blocks any session",
            Self::OtherRow => "its row has changed",
        })
    }
}

/// The change of each target since the plan was made, in order; `None` if no change is known.
pub fn still_there(plan: &ActionPlan, context: &PlanContext<'_>) -> Vec<Option<Change>> {
    plan.refreshed(context).rows.into_iter().map(|row| row.change).collect()
}

impl ActionPlan {
    /// The same plan with current data: the change of each target, its facts, what it blocks and frees. The targets stay,
    /// except a lease that its holder renewed, and so does the text to type.
    pub fn refreshed(&self, context: &PlanContext<'_>) -> Self {
        let mut plan = self.clone();
        let Some(index) = PlanIndex::of(context) else { return plan };
        if plan.rows.iter().any(|row| matches!(row.target.what, TargetKind::Session(_))) {
            signal::refresh(&index, &mut plan);
            return plan;
        }
        for row in &mut plan.rows {
            row.change = row.change.or_else(|| rows::follow(&index, &mut row.target.what));
        }
        plan
    }
}
