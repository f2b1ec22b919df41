use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::app::App;
use crate::app::context::Context;
use crate::app::dialog::{self, Dialog, DialogStep, PendingAction};
use crate::app::message::{Effect, Update};
use crate::app::page::Page;
use crate::app::panes::{Pane, RowId, findings};
use crate::app::subject;
use crate::keys::Key;
use crate::model::finding::Subject;
use crate::model::plan::{
    self, ActionPlan, ActionReport, ChosenTargets, CommandId, ExecutorOrder, KnownBlockers, Outcome,
    RecoveryPlan, TargetChange, TargetKind, Verb,
};
use crate::model::view::ConnectionState;
use crate::text;

/// How long an action waits for its effect.
const WAIT: Duration = Duration::from_secs(5);

/// How many terminated sessions are remembered. The grace period of each ends long before this overflows.
const TERMINATED: usize = 1000;

/// A live lease is renewed every few seconds, which makes it a new row version. Returns the new plan if nothing else
/// changed: the same owners have the same leases with the same tokens.
fn renewed(plan: &ActionPlan, anew: impl FnOnce() -> ActionPlan) -> Option<ActionPlan> {
    if !plan.rows.iter().any(|row| row.change == Some(TargetChange::OtherRow)) {
        return None;
    }
    let anew = anew();
    let same = |was: &TargetKind, is: &TargetKind| match (was, is) {
        (TargetKind::Lease(was), TargetKind::Lease(is)) => was.has_same_owner(is),
        (was, is) => was == is,
    };
    let pairs = || plan.rows.iter().zip(&anew.rows);
    let all = plan.rows.len() == anew.rows.len()
        && pairs().all(|(was, is)| same(&was.target.what, &is.target.what));
    all.then_some(anew)
}

impl App {
    /// Asks about the marked rows that are shown, otherwise about the selected row.
    pub(super) fn ask_here(&mut self, command: CommandId) -> Update {
        let pane = self.focus;
        if self.pane(pane).marks.is_empty() && self.pane(pane).unsettled().is_some() {
            return self.show_note("the row under the cursor has just changed; press again");
        }
        let mut rows = self.chosen(pane);
        if let Some(context) = self.context() {
            let ended = rows.iter().find_map(|row| findings::finding_of(&context, *row)?.ended);
            if let Some(ended) = ended {
                let ago = context.age(Some(ended)).map(text::age).unwrap_or_default();
                return self.show_note(format!("this finding ended {ago} ago; select another row"));
            }
            // For a finding, the action is on its subject.
            let subject = |row: &RowId| subject::subject_of(&context, *row).unwrap_or(*row);
            rows = match pane {
                Pane::Findings => rows.iter().map(subject).collect(),
                _ => rows,
            };
        }
        if self.is_done_with(command, &rows) {
            rows.clear();
        }
        let shown = self.shown_marks(pane);
        let hidden = self.pane(pane).marks.len().saturating_sub(shown);
        match (rows.is_empty(), hidden) {
            (true, 0) => self.show_note("select a row first"),
            (true, _) => self.show_note("the filter hides every marked row; Esc clears it"),
            (false, _) => self.ask(command, pane, rows, hidden),
        }
    }

    /// Whether the selected row has just been acted on, and this command does not apply to it any more.
    fn is_done_with(&self, command: CommandId, rows: &[RowId]) -> bool {
        let state = self.pane(self.focus);
        let Some((view, row)) = self.view.as_deref().zip(rows.first()) else { return false };
        let plan_context = self.plan_context(view);
        state.marks.is_empty()
            && state.is_done()
            && !(command.definition().applies)(&plan_context, subject::selected(view, *row))
    }

    /// Asks about the subject of the open page, regardless of marks.
    pub(super) fn ask_on_page(&mut self, command: CommandId) -> Update {
        match self.pages.last().cloned() {
            Some(Page::Detail { subject, .. }) => self.ask(command, self.focus, vec![subject], 0),
            _ => Update::none(),
        }
    }

    fn ask(&mut self, command: CommandId, pane: Pane, rows: Vec<RowId>, hidden: usize) -> Update {
        let Some(seen) = self.view.clone() else { return Update::none() };
        let plan_context = self.plan_context(&seen);
        let asked = (command, pane);
        let dialog =
            Dialog::new(&plan_context, &self.settings.keymap, asked, (rows, hidden), Arc::clone(&seen));
        let mut dialog = match dialog {
            Ok(dialog) => dialog,
            Err(why) => return self.insist(why),
        };
        match &mut dialog.chosen {
            ChosenTargets::Sessions(ask) => ask.shown = self.shown_by(pane, subject::party_of),
            ChosenTargets::Executions(search) if pane == Pane::Tasks => {
                search.shown = self.shown_by(pane, |context, id| {
                    let RowId::Task(task, again) = id else { return None };
                    let row = context.task(task, again)?;
                    Some((task.table, row.execution(context.snapshot)?.id))
                });
            }
            _ => {}
        }
        self.pane_mut(pane).keep_selected();
        let revision = self.next_number();
        dialog.plan_again(&self.plan_context(&seen), revision);
        self.dialog = Some(dialog);
        self.refresh_dialog()
    }

    /// The sessions or executions of the rows that the filter shows; `None` without a filter.
    fn shown_by<T: Eq + Hash>(
        &mut self,
        pane: Pane,
        of: impl Fn(&Context<'_>, RowId) -> Option<T>,
    ) -> Option<FxHashSet<T>> {
        if self.pane(pane).filter.is_empty() {
            return None;
        }
        self.with_pane(pane, |state, context| state.shown(context).filter_map(|id| of(context, id)).collect())
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Why no action is possible at all.
    pub fn cannot_ask(&self) -> Option<&'static str> {
        match self.link() {
            ConnectionState::Live => None,
            ConnectionState::Connecting => Some("not connected yet"),
            ConnectionState::Down { .. } => Some("the connection is down: no action is possible"),
        }
    }

    /// Brings the question up to date with the newest view. One that nothing is left of stays open with the reason, so that keys
    /// meant for it do not reach the screen; one that was not drawn yet is refused.
    pub(super) fn refresh_dialog(&mut self) -> Update {
        let Some((mut dialog, view)) = self.dialog.take().zip(self.newest().cloned()) else {
            return Update::redraw();
        };
        if view.target != dialog.seen.target {
            return self.insist("another server is shown now: nothing was done");
        }
        let plan_context = self.plan_context(&view);
        let plan = match &mut dialog.chosen {
            ChosenTargets::Executions(search) => {
                search.refresh(&plan_context);
                search.plan(&plan_context)
            }
            ChosenTargets::Rows(rows) if matches!(rows.first(), Some(RowId::Lease(_))) => {
                let refreshed = dialog.plan.refreshed(&plan_context);
                renewed(&refreshed, || dialog.chosen.plan(&plan_context, dialog.plan.verb))
                    .unwrap_or(refreshed)
            }
            ChosenTargets::Sessions(ask) => {
                plan::with_offers(dialog.plan.refreshed(&plan_context), &plan_context, ask)
            }
            ChosenTargets::Known(_) => dialog.plan.clone(),
            ChosenTargets::Rows(_) => dialog.plan.refreshed(&plan_context),
        };
        dialog.replan(plan, self.next_number());
        let was_over = dialog.over.is_some();
        dialog.over = match dialog.why_over() {
            Some(why) if dialog.is_new() => return self.insist(why),
            why => why.map(|why| format!("{why}: nothing was done")),
        };
        if dialog.over.is_some() && !was_over {
            dialog.scroll = 0;
        }
        let number = self.next_number();
        let asked = match &mut dialog.chosen {
            ChosenTargets::Executions(search) => search.ask(number, view.id),
            _ => None,
        };
        self.dialog = Some(dialog);
        match asked {
            Some((schema, request)) => {
                let (server, request) = (view.target, Arc::new(request));
                Update::effect(Effect::Order(ExecutorOrder::PlanRecovery { server, number, schema, request }))
            }
            None => Update::redraw(),
        }
    }

    pub(super) fn dialog_key(&mut self, key: Key) -> Update {
        let page = self.page_rows;
        let Some(dialog) = &mut self.dialog else { return Update::none() };
        match dialog.key(key, page) {
            DialogStep::Nothing => Update::none(),
            DialogStep::Changed => {
                self.clamp_dialog();
                Update::redraw()
            }
            DialogStep::Back => {
                let over = self.dialog.take().and_then(|dialog| dialog.over);
                self.show_note(over.unwrap_or_else(|| "nothing was done".to_owned()))
            }
            DialogStep::Confirm => self.confirm(),
            DialogStep::Replan => self.choice_changed(),
        }
    }

    /// The targets have changed: the question must be shown again before it can be confirmed.
    fn choice_changed(&mut self) -> Update {
        let (Some(mut dialog), Some(newest)) = (self.dialog.take(), self.newest().cloned()) else {
            return Update::none();
        };
        // An action on the rows themselves keeps them as they were when the key was pressed.
        let view = if dialog.is_about_the_rows() { Arc::clone(&dialog.seen) } else { newest };
        let revision = self.next_number();
        dialog.plan_again(&self.plan_context(&view), revision);
        self.dialog = Some(dialog);
        self.refresh_dialog()
    }

    pub(super) fn planned(&mut self, number: u64, answer: Result<Arc<RecoveryPlan>, String>) -> Update {
        let answer = answer.map(|plan| plan::without_grace(plan, &self.terminated));
        let answered = match self.dialog.as_mut().map(|dialog| &mut dialog.chosen) {
            Some(ChosenTargets::Executions(search)) => search.answered(number, answer),
            _ => false,
        };
        if answered { self.refresh_dialog() } else { Update::none() }
    }

    fn confirm(&mut self) -> Update {
        if let Some(why) = self.cannot_ask() {
            return self.show_note(why);
        }
        let number = self.next_number();
        let Some(dialog) = self.dialog.take() else { return Update::none() };
        let Dialog { pane, rows, chosen, plan, seen, .. } = dialog;
        if let ChosenTargets::Known(known) = &chosen {
            self.unmark(pane, &rows);
            return self.expect(known);
        }
        let command = plan.command(seen.target, number, WAIT);
        let count = command.targets.len();
        if count == 0 {
            return self.show_note("nothing to do");
        }
        self.unmark(pane, &rows);
        let selections = self.pane(pane).selections;
        self.pending_actions.push(PendingAction {
            number,
            verb: plan.verb,
            count,
            done: 0,
            pane,
            rows,
            selections,
        });
        Update::effect(Effect::Order(ExecutorOrder::Act(Arc::new(command))))
    }

    /// Applies a confirmed change from the next poll on, which it requests at once.
    pub(super) fn expect(&mut self, known: &KnownBlockers) -> Update {
        self.expected = known.applied(&self.expected).into();
        let name = known.name();
        let text = match known.verb() {
            Verb::ExpectNoMore => format!("{name} is no longer expected"),
            _ => format!("{name} is expected now"),
        };
        self.show_note(format!("{text}, in this run"));
        let expected = Arc::clone(&self.expected);
        let effects = vec![Effect::Expect(expected), Effect::Note(text), Effect::Refresh];
        Update { effects, redraw: true }
    }

    fn unmark(&mut self, pane: Pane, rows: &[RowId]) {
        let marks = &mut self.pane_mut(pane).marks;
        // `rows` are the subjects of the findings, not the findings.
        if pane == Pane::Findings {
            marks.clear();
        }
        for row in rows {
            marks.remove(row);
        }
    }

    pub(super) fn progress(&mut self, number: u64, done: usize) -> Update {
        let Some(pending) = self.pending_actions.iter_mut().find(|pending| pending.number == number) else {
            return Update::none();
        };
        pending.done = done;
        Update::redraw()
    }

    /// Shows the result of a command, and polls the server at once.
    pub(super) fn reported(&mut self, report: &ActionReport) -> Update {
        let (text, well) = dialog::summary(report);
        if report.verb == Verb::Terminate {
            let done = report.results.iter().filter(|result| result.outcome == Outcome::Done);
            self.terminated.extend(done.filter_map(|result| match result.subject {
                Subject::Backend(id) => Some(id),
                _ => None,
            }));
            let old = self.terminated.len().saturating_sub(TERMINATED);
            self.terminated.drain(..old);
        }
        if let Some(at) = self.pending_actions.iter().position(|pending| pending.number == report.number) {
            let pending = self.pending_actions.remove(at);
            if well {
                self.pane_mut(pending.pane).done_with(&pending.rows, pending.selections);
            }
        }
        if well {
            self.show_note(text);
        } else {
            self.insist(text);
        }
        Update::effect(Effect::Refresh)
    }

    pub(super) fn drawn(&mut self, revision: Option<u64>) -> Update {
        if let Some(notice) = &mut self.notice {
            notice.seen = true;
        }
        let changed = match (&mut self.dialog, revision) {
            (Some(dialog), Some(revision)) => dialog.drawn(revision),
            _ => false,
        };
        if changed { Update::redraw() } else { Update::none() }
    }

    /// Whether a frame with the question or notice still has to be drawn.
    pub fn awaits_frame(&self) -> bool {
        self.dialog.as_ref().is_some_and(|dialog| !dialog.is_armed())
            || self.notice.as_ref().is_some_and(|notice| !notice.seen)
    }

    /// Requires the question to be drawn again before it can be confirmed.
    pub(super) fn disarm(&mut self) {
        let revision = self.next_number();
        if let Some(dialog) = &mut self.dialog {
            dialog.disarm(revision);
        }
    }

    pub(super) fn scroll_dialog(&mut self, by: isize) -> Update {
        if let Some(dialog) = &mut self.dialog {
            dialog.scroll = dialog.scroll.saturating_add_signed(by);
        }
        self.clamp_dialog();
        Update::redraw()
    }

    fn clamp_dialog(&mut self) {
        let (columns, room) = (self.size.0, self.page_rows);
        if let Some(dialog) = &mut self.dialog {
            dialog.scroll = dialog.scroll.min(dialog.lines(columns).len().saturating_sub(room));
        }
    }
}
