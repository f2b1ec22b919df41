//! Finds the executions to recover. Only the server can tell what would be done to them, after another query.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::executions::{self, Recovery, RecoveryFilter, RecoveryScope};
use super::{ActionPlan, Choice, PlanContext, RecoveryPlan, Request, Verb};
use crate::model::task::{JobState, TaskId};

const END: char = 'e';

#[derive(Debug, Clone)]
pub struct RecoverySearch {
    /// The selected tasks, each with one of its executions if it has several.
    chosen: Vec<(TaskId, Option<i64>)>,
    /// The selected tasks, or all that are lost or slow.
    which: RecoveryScope,
    /// Limits the search for all.
    within: RecoveryFilter,
    place: Option<String>,
    /// Whether sessions of slow executions are terminated; `None` until the user chooses.
    terminate: Option<bool>,
    found: Recovery,
    /// The plan that the server made, or why it made none; `None` before its answer.
    answer: Option<Result<Arc<RecoveryPlan>, String>>,
    asked: Option<u64>,
    at: Option<u64>,
}

impl RecoverySearch {
    pub(super) fn new(chosen: Vec<(TaskId, Option<i64>)>) -> Self {
        let table = chosen.first().map_or(0, |(task, _)| task.table);
        Self {
            which: RecoveryScope::These(chosen.clone()),
            chosen,
            within: RecoveryFilter { table, shown: None },
            place: None,
            terminate: None,
            found: Recovery::default(),
            answer: None,
            asked: None,
            at: None,
        }
    }

    /// Limits the search to the executions that the filter shows, each with the table of its task.
    pub(crate) fn only(&mut self, shown: FxHashSet<(u32, i64)>) {
        self.within.shown = Some(shown);
    }

    /// Why nothing can be recovered, here or elsewhere; `None` if something may be.
    pub(crate) fn why_nothing(&self, look: &PlanContext<'_>) -> Option<String> {
        let tasks = &look.view.tasks;
        if self.found.request.is_some() || tasks.count(JobState::Orphan) + tasks.count(JobState::Slow) > 0 {
            return None;
        }
        let first = self.found.refused.first();
        first.map(|refused| format!("{}: {}", refused.name, refused.reason))
    }

    pub(crate) fn look(&mut self, look: &PlanContext<'_>) {
        self.place = executions::place(look, self.within.table);
        let mut found = executions::executions(look, &self.which);
        if let (Some((_, request)), Some(terminate)) = (&mut found.request, self.terminate) {
            request.terminate = terminate;
        }
        if found.request != self.found.request {
            self.forget();
        }
        self.found = found;
    }

    pub(crate) fn plan(&self, look: &PlanContext<'_>) -> ActionPlan {
        let mut plan = match &self.answer {
            Some(Ok(answer)) => executions::recovery(look, answer),
            Some(Err(_)) | None => ActionPlan::new(Verb::Recover),
        };
        plan.hidden = self.found.hidden;
        plan.refused.splice(0..0, self.found.refused.iter().cloned());
        plan
    }

    /// Why nothing is known yet, and whether that is an error.
    pub(crate) fn word(&self) -> Option<(String, bool)> {
        match &self.answer {
            Some(Ok(plan)) if plan.rows.is_empty() => Some(("nothing to recover".to_owned(), false)),
            Some(Err(why)) => Some((crate::text::one_line(why).into_owned(), true)),
            None if self.found.request.is_some() => {
                Some(("searching for tasks to recover…".to_owned(), false))
            }
            Some(Ok(_)) | None => None,
        }
    }

    /// Whether a session holds the key of an execution to recover, as far as the server has answered.
    fn has_session(&self) -> bool {
        matches!(&self.answer, Some(Ok(plan)) if plan.rows.iter().any(|row| row.seen.holder_pid.is_some()))
    }

    pub(crate) fn choices(&self) -> Vec<Choice> {
        let this = if self.chosen.len() > 1 { "these" } else { "this execution" };
        let place = self.place.as_deref().map(crate::text::one_line);
        let all = |what: &str| match &place {
            Some(place) => format!("all {what} of {place}"),
            None => format!("all {what}"),
        };
        let mut choices = vec![
            Choice::one_of('t', this, matches!(self.which, RecoveryScope::These(_))),
            Choice::one_of('o', all("orphans"), matches!(self.which, RecoveryScope::Orphans(_))),
            Choice::one_of('p', all("past their timeout"), matches!(self.which, RecoveryScope::Slow(_))),
        ];
        if let Some((_, request)) = self
            .found
            .request
            .as_ref()
            .filter(|_| self.has_session() && !matches!(self.which, RecoveryScope::Orphans(_)))
        {
            let title = "terminate their sessions".to_owned();
            choices.push(Choice { letter: END, title, taken: request.terminate, is_switch: true });
        }
        choices
    }

    /// Selects a choice; false if nothing changes.
    pub(crate) fn choose(&mut self, letter: char) -> bool {
        let which = match letter {
            't' => RecoveryScope::These(self.chosen.clone()),
            'o' => RecoveryScope::Orphans(self.within.clone()),
            'p' => RecoveryScope::Slow(self.within.clone()),
            END => {
                let before = self.found.request.as_ref().is_some_and(|(_, request)| request.terminate);
                self.terminate = Some(!before);
                self.forget();
                return true;
            }
            _ => return false,
        };
        if which == self.which {
            return false;
        }
        (self.which, self.terminate) = (which, None);
        self.forget();
        true
    }

    fn forget(&mut self) {
        (self.answer, self.asked, self.at) = (None, None, None);
    }

    /// The request to send, unless one was already sent for this view.
    pub(crate) fn ask(&mut self, number: u64, view: u64) -> Option<(String, Request)> {
        let request = self.found.request.clone()?;
        if self.asked.is_some() || self.at == Some(view) {
            return None;
        }
        (self.asked, self.at) = (Some(number), Some(view));
        Some(request)
    }

    /// Takes an answer; false if it belongs to an older request.
    pub(crate) fn answered(&mut self, number: u64, answer: Result<Arc<RecoveryPlan>, String>) -> bool {
        if self.asked != Some(number) {
            return false;
        }
        self.asked = None;
        self.answer = Some(answer);
        true
    }
}
