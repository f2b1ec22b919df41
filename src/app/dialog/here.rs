//! Which of the keys that act work here, and what they do here: for the footer.

use super::{order, verb};
use crate::app::App;
use crate::app::context::Context;
use crate::app::keymap::{self, Action};
use crate::app::page::{self, Page};
use crate::app::panes::{Owner, RowId};
use crate::model::backend::State;
use crate::model::finding::Finding;
use crate::model::lease::LeaseState;
use crate::model::plan::Look;
use crate::model::task::TaskState;
use crate::model::work_queue::ItemState;

/// The keys that act on the selected row, or on what the open page is about, and what each does there.
#[must_use]
pub fn here(app: &App) -> Vec<(Action, &'static str)> {
    let Some(context) = app.context().filter(|_| !app.settings.read_only) else { return Vec::new() };
    let row = match app.pages.last() {
        Some(Page::Detail { subject, .. }) => Some(*subject),
        Some(Page::Findings { chosen, .. }) => {
            let findings = context.view.findings.as_slice();
            let finding = page::position(findings, chosen.as_ref()).and_then(|at| findings.get(at));
            return finding.and_then(help).into_iter().collect();
        }
        Some(_) => None,
        None => app.pane(app.focus).selected.or_else(|| app.pane(app.focus).marks.iter().next().copied()),
    };
    let Some(row) = row else { return Vec::new() };
    let works = |action: &Action| works(&context, *action, row);
    let look = Look { view: context.view, rights: context.view.rights.as_deref(), own_pids: &app.own_pids };
    let named = |action: Action| {
        let (does, _) = order::meaning(&look, (action, app.focus), &[row])?;
        Some((action, verb(does)))
    };
    Action::ACTING.into_iter().filter(works).filter_map(named).collect()
}

/// The key that helps against a finding, and what it does.
#[must_use]
pub fn help(finding: &Finding) -> Option<(Action, &'static str)> {
    let binding = keymap::BINDINGS.iter().find(|binding| Some(binding.name) == finding.help)?;
    Some((binding.action, binding.short))
}

/// Whether a key does something to a row as it is now.
fn works(context: &Context<'_>, action: Action, row: RowId) -> bool {
    match action {
        Action::Cancel => match row {
            RowId::Group(..) => true,
            RowId::Backend(_) | RowId::Lock(..) => {
                let backend = page::pid_of(row).and_then(|pid| context.backend(pid));
                backend.is_some_and(|backend| backend.state == Some(State::Active))
            }
            _ => false,
        },
        Action::Terminate => match row {
            RowId::Group(..) | RowId::Backend(_) | RowId::Lock(_, Owner::Backend(_), ..) => true,
            _ => page::holder_of(context, row).is_some(),
        },
        Action::Recover => match row {
            RowId::Task(task, again) => {
                let state = context.task(task, again).map(|row| row.state);
                matches!(state, Some(TaskState::Orphan | TaskState::MaybeOrphan | TaskState::Slow))
            }
            RowId::Item(id) => {
                let state = context.item(id).map(|row| row.state);
                matches!(state, Some(ItemState::Lost | ItemState::MaybeLost | ItemState::Failed))
            }
            _ => false,
        },
        Action::Unlock => match row {
            RowId::Lease(id) => {
                let state = context.lease(id).map(|row| row.state);
                matches!(state, Some(LeaseState::Held))
            }
            _ => false,
        },
        Action::Enable | Action::MakeDue => match row {
            RowId::Task(task, again) => context.task(task, again).is_some_and(|row| row.schedule.is_some()),
            _ => false,
        },
        Action::SetAside => match row {
            RowId::Item(id) => {
                let state = context.item(id).map(|row| row.state);
                matches!(
                    state,
                    Some(ItemState::Lost | ItemState::MaybeLost | ItemState::Pending | ItemState::Resting)
                )
            }
            _ => false,
        },
        _ => false,
    }
}
