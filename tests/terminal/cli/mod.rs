//! The program as a user or a script sees it: its output, and its exit status.

mod check;
mod log;
mod prints;
mod record;
mod refused;
mod rights;
mod schema;
mod secrets;
#[path = "../../support/suite.rs"]
mod support;
mod terminal;
mod waits;
mod watch;

use crate::{binary, document};
