//! Workers that compete for tasks, as real processes: killed, stopped and cut off, and what the witness says of them.

mod contests;
mod crash;
mod ends;
mod forged;
mod headless;
mod play;
mod recipe;
mod stall;
#[path = "../../support/suite.rs"]
mod support;
mod url;
