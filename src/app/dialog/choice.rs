//! Who else could be meant: chosen in the dialog, by Tab or by a letter.

use crate::model::plan::Scope;

/// A choice, and whether it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key that takes it, beside Tab.
    pub letter: char,
    /// Who or what is meant by it, in words.
    pub title: String,
    /// It is the one that counts now.
    pub taken: bool,
    /// It stands for itself; the others exclude each other.
    pub is_switch: bool,
}

impl Choice {
    /// A choice that excludes those beside it.
    pub(super) fn one_of(letter: char, title: impl Into<String>, taken: bool) -> Self {
        Self { letter, title: title.into(), taken, is_switch: false }
    }
}

/// The letter that chooses a scope.
pub(super) const fn letter(scope: Scope) -> char {
    match scope {
        Scope::This => 't',
        Scope::Root => 'r',
        Scope::Blockers => 'b',
    }
}
