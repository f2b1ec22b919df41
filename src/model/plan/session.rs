//! What else ends with a session: a worker runs all its tasks in one.

use serde::{Deserialize, Serialize};

use super::{Planned, Reason, Running, Step};
use crate::model::Timestamp;

/// An execution that nobody asked to recover, and that ends with a session that is ended for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlsoEnded {
    /// The execution.
    pub execution_id: i64,
    /// Its task's name, as the server has it.
    pub task_name: String,
    /// What that costs it, in words.
    pub effect: String,
}

/// A session: its process and when it began.
type Session = (i32, Timestamp);

fn holder(seen: &Running) -> Option<Session> {
    seen.holder_pid.zip(seen.holder_start)
}

fn ended(row: &Planned) -> Option<Session> {
    match row.step {
        Step::Terminate { pid, start } => Some((pid, start)),
        Step::Recover | Step::Leave(_) => None,
    }
}

/// Writes under each row what else its session runs by `running`, which is everything that does, whatever was asked for.
pub(super) fn fill(rows: &mut [Planned], running: &[Running]) {
    let sessions: Vec<Session> = rows.iter().filter_map(ended).collect();
    for row in &mut *rows {
        if !row.acts() && holder(&row.seen).is_some_and(|session| sessions.contains(&session)) {
            row.step = Step::Leave(Reason::SessionEnds);
        }
    }
    if sessions.is_empty() {
        return;
    }
    let asked: Vec<i64> = rows.iter().filter(|row| row.acts()).map(|row| row.seen.execution_id).collect();
    let others: Vec<(Session, AlsoEnded)> = running
        .iter()
        .filter(|seen| !asked.contains(&seen.execution_id))
        .filter_map(|seen| Some((holder(seen)?, also(seen))))
        .collect();
    for row in rows {
        let Some(session) = ended(row) else { continue };
        let same = others.iter().filter(|(other, _)| *other == session);
        row.also_ended = same.map(|(_, also)| also.clone()).collect();
    }
}

fn also(seen: &Running) -> AlsoEnded {
    AlsoEnded { execution_id: seen.execution_id, task_name: seen.task_name.clone(), effect: cost(seen) }
}

/// What it costs an execution that its session ends: sooner or later it is recovered too, as an attempt that failed.
pub(super) fn cost(seen: &Running) -> String {
    let Running { attempt, max_attempts, .. } = seen;
    match (seen.gives_up(), seen.is_scheduled) {
        (false, _) => format!("loses attempt {attempt} of {max_attempts}"),
        (true, false) => format!("gives up for good: attempt {attempt} of {max_attempts}"),
        (true, true) => format!("gives up: attempt {attempt} of {max_attempts}; runs next by its schedule"),
    }
}
