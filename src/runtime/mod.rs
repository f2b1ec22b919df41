mod alert;
mod event_loop;
pub mod fault;
mod frame;
mod input;
mod job;
pub mod panics;
pub mod signals;
pub mod terminal;

pub use event_loop::{Exit, Source, run};
