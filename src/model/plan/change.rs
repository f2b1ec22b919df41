//! How a target has changed since it was chosen.

use std::fmt;

use super::context::PlanIndex;
use super::{ActionPlan, PlanContext, TargetKind, rows, signal};

/// Why the server would not act on a target any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It no longer exists.
    Gone,
    /// This role cannot see it any more.
    Hidden,
    /// Its session is in another transaction, or in none.
    OtherTransaction,
    /// Its session runs another query than it did.
    OtherQuery,
    /// Its session is idle, and has run something since: in a pool it may serve somebody else.
    RanSomething,
    /// Its session serves another client: the application, role or address differs.
    OtherClient,
    /// Its session runs no query any more that could be cancelled.
    NotActive,
    /// It has not got the lock any more for which it was chosen.
    HoldsNotAnyMore,
    /// Nobody waits for it any more.
    BlocksNobody,
    /// Its row is not as it was seen.
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

/// How each target has changed since the plan was made, in their order; none where it has not, as far as can be told.
pub fn still_there(plan: &ActionPlan, context: &PlanContext<'_>) -> Vec<Option<Change>> {
    plan.refreshed(context).rows.into_iter().map(|row| row.change).collect()
}

impl ActionPlan {
    /// The same plan with what is known by now: what has changed about each target, its facts, what it blocks and frees. The
    /// targets stay, but for a lease that its holder has renewed; and so does what has to be typed.
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
