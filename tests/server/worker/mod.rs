//! The worker on real servers: that due work is run once, that it stops when its lock is lost, and that
//! nothing is left behind.

mod crowd;
#[path = "../schema/db.rs"]
mod db;
mod due;
mod hand;
mod log;
mod loss;
mod named;
mod opens;
mod pooled;
mod process;
mod programs;
mod queue;
mod rest;
mod runs;
mod signals;
mod statement;
#[path = "../../support/suite.rs"]
mod support;
mod suspend;
mod types;
mod upkeep;

use crate::{binary, pooler};
