//! Who else could be meant: chosen in the dialog, by Tab or by a letter.

use crate::model::plan::Scope;

/// A choice, and whether it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key.
    pub letter: char,
    /// What it means.
    pub title: String,
    /// It is taken.
    pub taken: bool,
    /// It stands for itself; the others exclude each other.
    pub is_switch: bool,
}

impl Choice {
    /// One of several.
    pub(super) fn one_of(letter: char, title: impl Into<String>, taken: bool) -> Self {
        Self { letter, title: title.into(), taken, is_switch: false }
    }
}

/// The letter of a scope.
pub(super) const fn letter(scope: Scope) -> char {
    match scope {
        Scope::This => 't',
        Scope::Root => 'r',
        Scope::Below => 'b',
    }
}
