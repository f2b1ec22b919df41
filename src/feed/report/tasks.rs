//! Problems of tasks and queue items, and how they ended.

use rustc_hash::FxHashMap;

use crate::model::event::{Event, EventKind};
use crate::model::finding::{Severity, Subject};
use crate::model::task::{JobState, TaskId};
use crate::model::view::View;
use crate::order::SortExt;
use crate::output::report::{AT_END, TaskIncident};
use crate::text::one_line;

/// Most problems in the report.
const KEPT: usize = 1_000;

/// An open problem of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// It is running according to the log; ends with its execution.
    Runs,
    /// It is not running; ends when it starts.
    Waits,
    /// Its key is held without an execution; no event shows the end.
    Leaks,
}

impl Wrong {
    fn of(kind: EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::TaskOrphaned | EventKind::TaskSlow => Self::Runs,
            EventKind::TaskOverdue => Self::Waits,
            EventKind::TaskLeaked => Self::Leaks,
            _ => return None,
        })
    }

    fn of_state(state: JobState) -> Option<Self> {
        Some(match state {
            JobState::Orphan | JobState::MaybeOrphan | JobState::Slow | JobState::MaybeSlow => Self::Runs,
            JobState::Overdue | JobState::GivenUp => Self::Waits,
            JobState::Leaked => Self::Leaks,
            _ => return None,
        })
    }

    fn ends_with(self, kind: EventKind) -> bool {
        match self {
            Self::Runs => matches!(kind, EventKind::TaskEnded | EventKind::TaskRecovered),
            Self::Waits => matches!(kind, EventKind::TaskStarted | EventKind::TaskEnded),
            Self::Leaks => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct TaskIncidents {
    rows: Vec<TaskIncident>,
    open: FxHashMap<TaskId, Vec<(Wrong, usize)>>,
}

impl TaskIncidents {
    pub(super) fn begin(&mut self, view: &View) {
        let Some(snapshot) = view.snapshot.as_deref() else { return };
        for row in &view.tasks.rows {
            let Some(wrong) = Wrong::of_state(row.state) else { continue };
            let text = format!("{} was {} already", one_line(&row.name(snapshot)), row.state.as_str());
            self.push(TaskIncident { at: snapshot.taken_at, text, ended: None }, Some((row.task, wrong)));
        }
    }

    /// Processes an event: closes the problems that it ends, and adds a problem if it is one.
    pub(super) fn event(&mut self, event: &Event) {
        let task = match event.subject {
            Some(Subject::Task(task)) => Some(task),
            _ => None,
        };
        if let Some(open) = task.and_then(|task| self.open.get_mut(&task)) {
            open.retain(|(wrong, row)| {
                let ends = wrong.ends_with(event.kind);
                if let Some(row) = self.rows.get_mut(*row).filter(|_| ends) {
                    // The name is already shown in the row.
                    let how = event.text();
                    let how = how.strip_prefix(&*event.who).unwrap_or(&how).trim_start();
                    row.ended = Some((event.at, how.to_owned()));
                }
                !ends
            });
        }
        let wrong = Wrong::of(event.kind);
        let is_bad = event.severity > Severity::Info;
        let failed = matches!(event.kind, EventKind::TaskEnded | EventKind::ItemFailed | EventKind::ItemLost)
            && is_bad;
        if wrong.is_some() || failed {
            let open = task.zip(wrong);
            self.push(TaskIncident { at: event.at, text: event.text(), ended: None }, open);
        }
    }

    fn push(&mut self, row: TaskIncident, open: Option<(TaskId, Wrong)>) {
        if self.rows.len() >= KEPT {
            return;
        }
        if let Some((task, wrong)) = open {
            self.open.entry(task).or_default().push((wrong, self.rows.len()));
        }
        self.rows.push(row);
    }

    pub(super) fn end(mut self, view: Option<&View>) -> Vec<TaskIncident> {
        let Some((view, snapshot)) = view.and_then(|view| Some((view, view.snapshot.as_deref()?))) else {
            return self.rows;
        };
        for (task, open) in self.open {
            let state = view.tasks.rows.iter().find(|row| row.task == task).map(|row| row.state);
            let how = match state {
                Some(state) if Wrong::of_state(state).is_some() => format!("{}{AT_END}", state.as_str()),
                Some(state) => format!("over: {}{AT_END}", state.as_str()),
                None => format!("not in its table{AT_END}"),
            };
            for (_, row) in open {
                if let Some(row) = self.rows.get_mut(row) {
                    row.ended = Some((snapshot.taken_at, how.clone()));
                }
            }
        }
        self.rows.order_by_key(|row| row.at);
        self.rows
    }
}
