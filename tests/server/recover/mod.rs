//! Recovery as a library and as a command, on real servers: which executions are planned and recovered, and
//! above all which are not.

mod command;
#[path = "../schema/db.rs"]
mod db;
mod library;
mod pooled;
mod prompt;
mod published;
mod record;
mod refused;
mod restart;
mod rights;
mod siblings;
mod stage;
mod standby;
#[path = "../../support/suite.rs"]
mod support;

use crate::{binary, document, pooler, screen};
