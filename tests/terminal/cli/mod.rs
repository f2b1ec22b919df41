//! The program as a person or a script meets it: what it prints where, and with what exit status.

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
