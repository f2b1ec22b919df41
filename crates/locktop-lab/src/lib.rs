//! A laboratory for locks: servers of our own, [`postgres`] and, with the feature of that name, `redis`; states of contention in them ([`scenario`]); workers that compete
//! for tasks ([`tasks`]) and for the other lock systems ([`contest`]), faults injected into them, and witnesses of what really ran when. For the demo,
//! for tests and for benches.
#![allow(
    clippy::missing_errors_doc,
    reason = "the types of errors say what can go wrong; a section says what follows where that is not plain"
)]

pub mod contest;
mod install;
mod language;
mod open_question;
mod owned;
pub mod postgres;
mod process;
#[cfg(feature = "redis")]
pub mod redis;
mod run;
pub mod scenario;
pub mod tasks;
mod workers;

pub use language::Language;
pub use open_question::OpenQuestion;
pub use process::LaunchError;
pub use run::{Demo, DemoError, DemoOptions, run};
