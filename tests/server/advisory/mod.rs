//! Advisory locks on real servers of every version, and behind a real pooler.

mod functions;
mod look;
mod loss;
mod pooled;
mod rules;
mod silent;
mod stack;
#[path = "../../support/suite.rs"]
mod support;
mod wait;

use crate::pooler;
