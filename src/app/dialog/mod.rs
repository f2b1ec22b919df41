//! The dialog before an action, which shows what will happen to which targets.
//!
//! Pure. An action needs a confirmation that was typed while the current dialog was on the screen: a dialog that was
//! not drawn yet, or whose targets have changed since it was drawn, accepts only the keys that close it. The focus is
//! on Back.

mod ask;
mod lines;

use std::sync::Arc;

use crate::app::panes::{Pane, RowId};
use crate::keys::{Code, Key};
use crate::model::consequence::DataEffect as OnData;
use crate::model::plan::{
    ActionPlan, CautionKind, Choice, ChosenTargets, Confirm, PlannedTarget, TargetKind, TargetScope,
    WorkAtRisk,
};
use crate::model::view::View;

pub use ask::{help, here};
pub(in crate::app) use lines::summary;
pub use lines::{PendingAction, width};

/// Maximum length of a typed confirmation.
const LONGEST: usize = 200;

#[derive(Debug, Clone)]
pub struct Dialog {
    /// The pane of the rows; their marks are removed after the action.
    pub pane: Pane,
    pub rows: Vec<RowId>,
    /// Number of marked rows that are hidden by the filter and left out.
    pub hidden: usize,
    pub chosen: ChosenTargets,
    pub plan: ActionPlan,
    /// The view on the screen when the action was requested.
    pub(in crate::app) seen: Arc<View>,
    pub typed: String,
    pub scroll: usize,
    pub word: Option<String>,
    /// Why nothing is left to confirm: the target has ended or changed since it was shown. Only Back works then.
    pub over: Option<String>,
    /// Changes with everything that a confirmation covers.
    pub revision: u64,
    /// The current state is on the screen.
    armed: bool,
    /// It has never been on the screen.
    new: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum DialogStep {
    Nothing,
    Changed,
    Back,
    Confirm,
    /// The request has changed: its plan must be made again.
    Replan,
}

impl Dialog {
    pub(in crate::app) fn drawn(&mut self, revision: u64) -> bool {
        let was = self.armed;
        self.new = false;
        self.armed |= revision == self.revision;
        was != self.armed
    }

    /// Whether it can be confirmed: its current state is on the screen.
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    pub(in crate::app) fn is_new(&self) -> bool {
        self.new
    }

    pub(in crate::app) fn disarm(&mut self, revision: u64) {
        (self.armed, self.revision) = (false, revision);
        self.typed.clear();
        self.word = None;
    }

    /// Takes a newer plan. If the plan has changed, it must be drawn before it can be confirmed.
    pub(in crate::app) fn replan(&mut self, plan: ActionPlan, revision: u64) {
        if !is_same(&self.plan, &plan) {
            // Typed text is kept when the lease that it names is renewed; the dialog must be drawn again all the same.
            let typed = std::mem::take(&mut self.typed);
            self.disarm(revision);
            // Of an execution it is not told what else ends with it.
            let is_execution = |row: &PlannedTarget| matches!(row.target.what, TargetKind::Execution(_));
            let same_loss = losses(&self.plan) == losses(&plan) && !plan.rows.iter().any(is_execution);
            if same_loss && names(&self.plan) == names(&plan) && self.plan.confirm == plan.confirm {
                self.typed = typed;
            }
        }
        self.plan = plan;
    }

    /// Why there is nothing left to confirm; `None` while there is, or may be.
    pub fn why_over(&self) -> Option<String> {
        match &self.chosen {
            // There is more to choose from; an entry for a blocker stays valid after the blocker has ended.
            ChosenTargets::Executions(_) | ChosenTargets::Known(_) => None,
            _ => self.plan.why_over(),
        }
    }

    pub fn choices(&self) -> Vec<Choice> {
        match &self.chosen {
            ChosenTargets::Sessions(ask) => {
                let choice = |(scope, title): &(TargetScope, String)| {
                    Choice::one_of(scope.letter(), title.as_str(), *scope == ask.scope)
                };
                self.plan.offers.iter().map(choice).collect()
            }
            ChosenTargets::Executions(search) => search.choices(),
            ChosenTargets::Rows(_) | ChosenTargets::Known(_) => Vec::new(),
        }
    }

    /// Whether every character belongs to the confirmation: if a number must be typed, letters are free for other keys.
    pub fn takes_letters(&self) -> bool {
        let word = self.plan.confirm.word().filter(|_| self.types());
        word.is_some_and(|word| !word.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Whether a word must be typed, rather than a key pressed.
    pub fn types(&self) -> bool {
        matches!(self.plan.confirm, Confirm::Count(_) | Confirm::Owner(_))
    }

    pub(in crate::app) fn key(&mut self, key: Key, page: usize) -> DialogStep {
        if key == Key::plain(Code::Esc) || key == Key::plain(Code::F(10)) || key == Key::ctrl('c') {
            return DialogStep::Back;
        }
        if self.over.is_some() {
            // Any letter may belong to a word that was being typed.
            return match key.code {
                Code::Enter if self.armed => DialogStep::Back,
                code => self.scroll(code, page),
            };
        }
        if !self.armed {
            return DialogStep::Nothing;
        }
        self.word = None;
        match key {
            Key { ctrl: true, .. } | Key { alt: true, .. } => DialogStep::Nothing,
            Key { code: Code::Enter, .. } => self.enter(),
            Key { code: Code::Backspace, .. } if self.typed.pop().is_some() => DialogStep::Changed,
            Key { code: Code::Tab, .. } => self.next_choice(1),
            Key { code: Code::BackTab, .. } => self.next_choice(-1),
            Key { code: Code::Char(character), .. } => self.character(character),
            Key { code, .. } => self.scroll(code, page),
        }
    }

    fn enter(&mut self) -> DialogStep {
        // The focus is on Back.
        if !self.types() || self.typed.is_empty() {
            return DialogStep::Back;
        }
        if self.plan.confirm.accepts(&self.typed) {
            return DialogStep::Confirm;
        }
        self.word = Some("does not match: not confirmed".to_owned());
        self.typed.clear();
        DialogStep::Changed
    }

    fn character(&mut self, character: char) -> DialogStep {
        if self.plan.confirm == Confirm::Yes && character == 'y' {
            return DialogStep::Confirm;
        }
        if self.types() && (self.takes_letters() || character.is_ascii_digit()) {
            if self.typed.len() < LONGEST {
                self.typed.push(character);
            }
            return DialogStep::Changed;
        }
        match character {
            'q' => DialogStep::Back,
            'j' => self.scroll(Code::Down, 1),
            'k' => self.scroll(Code::Up, 1),
            letter if self.choices().iter().any(|choice| choice.letter == letter) => self.choose(letter),
            // The user types something else, which may contain a `y`.
            _ if self.plan.confirm == Confirm::Yes => DialogStep::Back,
            _ => self.not_by_a_key(),
        }
    }

    /// `type 4312 to confirm, then Enter`: the answer to a key without effect.
    fn not_by_a_key(&mut self) -> DialogStep {
        self.typed.clear();
        self.word = Some(match self.plan.confirm.word().filter(|_| self.types()) {
            Some(word) => format!("type {word} to confirm, then Enter"),
            None => "nothing can be confirmed here; Enter goes back".to_owned(),
        });
        DialogStep::Changed
    }

    fn choose(&mut self, letter: char) -> DialogStep {
        let offers = &self.plan.offers;
        match &mut self.chosen {
            ChosenTargets::Sessions(ask) => match offers.iter().find(|(scope, _)| scope.letter() == letter) {
                Some((scope, _)) if *scope != ask.scope => ask.scope = *scope,
                _ => return DialogStep::Nothing,
            },
            ChosenTargets::Executions(search) => {
                if !search.choose(letter) {
                    return DialogStep::Nothing;
                }
            }
            ChosenTargets::Rows(_) | ChosenTargets::Known(_) => return DialogStep::Nothing,
        }
        self.scroll = 0;
        DialogStep::Replan
    }

    fn next_choice(&mut self, by: isize) -> DialogStep {
        let mut choices = self.choices();
        choices.retain(|choice| !choice.is_switch);
        let taken = choices.iter().position(|choice| choice.taken);
        let count = choices.len().max(1).cast_signed();
        let next = taken.map_or(0, |at| (at.cast_signed() + by).rem_euclid(count).unsigned_abs());
        choices.get(next).map_or(DialogStep::Nothing, |choice| self.choose(choice.letter))
    }

    fn scroll(&mut self, code: Code, page: usize) -> DialogStep {
        let by = match code {
            Code::Up => -1,
            Code::Down => 1,
            Code::PageUp => -page.cast_signed(),
            Code::PageDown => page.cast_signed(),
            Code::Home => isize::MIN,
            Code::End => isize::MAX,
            _ => return DialogStep::Nothing,
        };
        self.scroll = self.scroll.saturating_add_signed(by);
        DialogStep::Changed
    }
}

fn names(plan: &ActionPlan) -> Vec<(&str, bool)> {
    plan.rows.iter().map(|row| (row.target.name.as_str(), row.change.is_some())).collect()
}

type Losses<'a> = (Option<OnData>, Vec<(CautionKind, &'a [WorkAtRisk])>);

fn losses(plan: &ActionPlan) -> Vec<Losses<'_>> {
    let rows = plan.rows.iter().map(|row| {
        let effect = row.consequence.as_ref().map(|consequence| consequence.effect);
        (effect, row.cautions.iter().map(|caution| (caution.kind, caution.about.as_slice())).collect())
    });
    rows.collect()
}

/// Whether a confirmation of one is valid for the other. Ages and counts of other sessions may differ.
fn is_same(one: &ActionPlan, other: &ActionPlan) -> bool {
    let is_same = |(one, other): (&PlannedTarget, &PlannedTarget)| {
        let (was, is) = (&one.target, &other.target);
        one.change.is_some() == other.change.is_some()
            && was.name == is.name
            && was.subject == is.subject
            && was.what.is_same(&is.what)
    };
    one.verb == other.verb
        && one.confirm == other.confirm
        && one.rows.len() == other.rows.len()
        && one.rows.iter().zip(&other.rows).all(is_same)
        && losses(one) == losses(other)
}
