//! Workers that compete for tasks, as real processes: killed, stopped and disconnected, and the reports of
//! the witness about them.

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
