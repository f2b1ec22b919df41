//! The graph against small scenarios and against slow references.

mod answers;
mod properties;
mod reference;
mod scenarios;
mod script;
