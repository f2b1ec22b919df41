use crate::app::App;
use crate::app::context::Context;
use crate::app::keymap::{self, Action};
use crate::app::page::Page;
use crate::app::panes::{RowId, findings};
use crate::app::subject;
use crate::model::finding::{Finding, Subject};
use crate::model::plan::known::is_blocker;
use crate::model::plan::{CommandId, Verb};
use crate::model::wait_graph::Party;

pub fn here(app: &App) -> Vec<(Action, &'static str)> {
    let Some(context) = app.context().filter(|_| app.replay.is_none()) else { return Vec::new() };
    let read_only = app.settings.read_only;
    let row = match app.pages.last() {
        Some(Page::Detail { subject, .. }) => Some(*subject),
        Some(_) => None,
        None => app.pane(app.focus).selected.or_else(|| app.pane(app.focus).marks.iter().next().copied()),
    };
    // No shortcut is shown for a finding without a remedy by key.
    let is_helped = |row: &RowId| {
        findings::finding_of(&context, *row)
            .is_none_or(|finding| finding.ended.is_none() && (finding.help.is_some() || is_blocker(finding)))
    };
    let is_refused = row.and_then(|row| findings::finding_of(&context, row)).is_some_and(|finding| {
        let backend = finding.pid().and_then(|pid| context.backend(pid));
        finding.help.is_none()
            && backend.is_some_and(|backend| context.snapshot_view().remedy(backend, false).is_err())
    });
    // A key acts on the subject of an event only on the page of that subject.
    let is_event = |row: &RowId| matches!(row, RowId::Event(..) | RowId::Routine(_));
    let Some(row) = row.filter(|row| is_helped(row) && !is_event(row)) else { return Vec::new() };
    let id = subject::subject_of(&context, row).unwrap_or(row);
    let row = subject::selected(context.view, id);
    let look = app.plan_context(context.view);
    let named = |command: CommandId| {
        let what = command.definition();
        if ((read_only || is_refused) && !what.is_local) || !(what.applies)(&look, row) {
            return None;
        }
        let (verb, _) = (what.choose)(&look, &[row])?;
        let does = match (id, command) {
            (RowId::Awaited(_), CommandId::Terminate) => "terminate holder",
            (RowId::Awaited(_), CommandId::Cancel) => "cancel holder",
            (_, CommandId::Unlock) => what.short,
            _ => verb.does(),
        };
        (!is_standby(&context) || !verb.definition().writes).then_some((Action::Command(command), does))
    };
    CommandId::ALL.into_iter().filter_map(named).collect()
}

pub fn help(finding: &Finding) -> Option<(Action, &'static str)> {
    let binding = keymap::BINDINGS.iter().find(|binding| Some(binding.name) == finding.help)?;
    Some((binding.action, binding.short))
}

/// Whether the role may perform the action on the session of a finding, as far as known. If the key is pressed anyway,
/// it reports the missing privilege.
pub fn is_permitted(context: &Context<'_>, finding: &Finding, action: Action) -> bool {
    let verb = match action {
        Action::Command(CommandId::Terminate) => Verb::Terminate,
        Action::Command(CommandId::Cancel) => Verb::Cancel,
        Action::Command(CommandId::Unlock) => return true,
        Action::Command(_) => return !is_standby(context),
        _ => return true,
    };
    let pid = match finding.subject {
        Subject::Backend(id) => id.pid,
        Subject::Party(Party::Backend(pid)) => pid,
        _ => return true,
    };
    let (Some(rights), Some(backend)) = (context.view.rights.as_deref(), context.backend(pid)) else {
        return true;
    };
    rights.lacks(verb, backend.user.as_deref(), backend.backend_type.as_deref()).is_none()
}

fn is_standby(context: &Context<'_>) -> bool {
    context.snapshot.server().is_some_and(|server| server.in_recovery)
}
