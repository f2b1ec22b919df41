//! The graph against small scenarios and against slow references.

mod answers;
mod lists;
mod properties;
mod reference;
mod scenarios;
mod script;
