//! Child processes: started, given input, and ended, even if this process is killed.

mod child;
mod paused;
mod server;

pub(crate) use child::Process;
pub(crate) use paused::{Paused, is_stopped};
pub use server::LaunchError;
pub(crate) use server::{POLL, SHELL, Server, TIMEOUT, is_plain};
