use std::sync::Arc;

use super::Dialog;
use crate::app::context::Context;
use crate::app::keymap::{self, Action, KeyMap};
use crate::app::page::Page;
use crate::app::panes::{LockOwner, Pane, RowId, findings};
use crate::app::{App, subject};
use crate::model::finding::Finding;
use crate::model::plan::is_blocker;
use crate::model::plan::{ActionPlan, ChosenTargets, CommandId, PlanContext, TargetScope};
use crate::model::task::JobState;
use crate::model::view::View;

/// `U ends a lease; this is a session: K ends it`.
fn why_not(plan_context: &PlanContext<'_>, keymap: &KeyMap, command: CommandId, row: RowId) -> String {
    let key = |command: CommandId| {
        keymap.key(Action::Command(command)).map_or_else(|| "no key".to_owned(), |key| key.to_string())
    };
    let (what, other) = match row {
        RowId::Backend(_) | RowId::Group(..) => ("a session", Some((CommandId::Terminate, "terminates it"))),
        RowId::Awaited(_) => ("a lock", Some((CommandId::Terminate, "terminates its holder"))),
        RowId::Lock(_, LockOwner::Backend(_), ..) => {
            ("a lock of a session", Some((CommandId::Terminate, "terminates that session")))
        }
        RowId::Prepared(_) | RowId::Lock(_, LockOwner::Prepared(_), ..) => ("a prepared transaction", None),
        RowId::Task(..) if is_orphan(plan_context, row) => {
            ("a task that lost its worker", Some((CommandId::Recover, "recovers it")))
        }
        RowId::Task(..) => ("a task", Some((CommandId::Recover, "recovers it"))),
        RowId::Lease(_) => ("a lease", Some((CommandId::Unlock, "ends it"))),
        RowId::Item(_) => ("an item of the work queue", Some((CommandId::Recover, "returns it"))),
        _ => (row.home().definition().one, None),
    };
    let hint = other.map(|(other, does)| format!(": {} {does}", key(other))).unwrap_or_default();
    format!("{} {}; this is {what}{hint}", key(command), command.definition().purpose)
}

/// A task whose worker no longer exists: there is no session to act on.
fn is_orphan(plan_context: &PlanContext<'_>, row: RowId) -> bool {
    let RowId::Task(task, again) = row else { return false };
    plan_context.view.task(task, again).is_some_and(|row| row.state == JobState::Orphan)
}

impl Dialog {
    /// The question of a shortcut about these rows of a pane, not planned yet.
    ///
    /// # Errors
    /// Why the key has no effect on such rows, in one line.
    pub(in crate::app) fn new(
        plan_context: &PlanContext<'_>,
        keymap: &KeyMap,
        (command, pane): (CommandId, Pane),
        (rows, hidden): (Vec<RowId>, usize),
        seen: Arc<View>,
    ) -> Result<Self, String> {
        let Some(first) = rows.first().copied() else {
            return Err("nothing selected".to_owned());
        };
        let selected: Vec<_> = rows.iter().map(|row| subject::selected(plan_context.view, *row)).collect();
        let choice = (command.definition().choose)(plan_context, &selected);
        let (verb, mut chosen) = choice.ok_or_else(|| why_not(plan_context, keymap, command, first))?;
        let why = match &mut chosen {
            ChosenTargets::Sessions(ask) => {
                // The holder of an awaited lock is a target because sessions wait for it.
                ask.from_chains = matches!(pane, Pane::Chains | Pane::Locks);
                ask.of_roots = matches!(pane, Pane::Chains | Pane::Findings);
                (rows.len() == 1 && is_orphan(plan_context, first))
                    .then(|| why_not(plan_context, keymap, command, first))
            }
            ChosenTargets::Executions(search) => {
                search.refresh(plan_context);
                search.why_nothing(plan_context)
            }
            ChosenTargets::Known(known) => known.why_nothing(),
            ChosenTargets::Rows(_) => None,
        };
        why.map_or(Ok(()), Err)?;
        Ok(Self {
            pane,
            rows,
            hidden,
            chosen,
            plan: ActionPlan::new(verb),
            seen,
            typed: String::new(),
            scroll: 0,
            word: None,
            over: None,
            revision: 0,
            armed: false,
            new: true,
        })
    }

    /// Makes the plan again, which must then be shown before it can be confirmed.
    pub(in crate::app) fn plan_again(&mut self, plan_context: &PlanContext<'_>, revision: u64) {
        self.plan = self.chosen.plan(plan_context, self.plan.verb);
        self.disarm(revision);
    }

    /// Whether the targets are the rows themselves and no other sessions.
    pub(in crate::app) fn is_about_the_rows(&self) -> bool {
        !matches!(&self.chosen, ChosenTargets::Sessions(ask) if ask.scope != TargetScope::This)
    }
}

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
    let plan_context = app.plan_context(context.view);
    let named = |command: CommandId| {
        let what = command.definition();
        if ((read_only || is_refused) && !what.is_local) || !(what.applies)(&plan_context, row) {
            return None;
        }
        let (verb, _) = (what.choose)(&plan_context, &[row])?;
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

fn is_standby(context: &Context<'_>) -> bool {
    context.snapshot.server().is_some_and(|server| server.in_recovery)
}
