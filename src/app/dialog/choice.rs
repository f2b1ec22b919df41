use crate::model::plan::Scope;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key that selects it, as an alternative to Tab.
    pub letter: char,
    pub title: String,
    pub taken: bool,
    /// A switch is independent; the other choices exclude each other.
    pub is_switch: bool,
}

impl Choice {
    pub(super) fn one_of(letter: char, title: impl Into<String>, taken: bool) -> Self {
        Self { letter, title: title.into(), taken, is_switch: false }
    }
}

pub(super) const fn letter(scope: Scope) -> char {
    match scope {
        Scope::This => 't',
        Scope::Root => 'r',
        Scope::Blockers => 'b',
    }
}
