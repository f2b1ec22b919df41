//! Advisory locks on real servers of every version, and behind a real pooler.

mod command;
mod functions;
mod leader;
mod loss;
mod names;
mod observer;
mod permits;
mod pooled;
mod pools;
mod pools_rules;
mod rules;
mod silent;
mod stack;
#[path = "../../support/suite.rs"]
mod support;
mod wait;

use crate::pooler;
