mod event_loop;
mod job;
pub mod signals;
pub mod terminal;

pub use event_loop::{Exit, Source, run};
