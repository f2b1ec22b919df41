//! Leases on real servers of every version: the SQL, the guard, and holders in processes of their own.

mod article;
mod crowd;
mod faults;
mod fence;
mod force;
mod guard;
mod holder;
mod named;
mod paused;
mod place;
mod queue;
mod sql;
#[path = "../../support/suite.rs"]
mod support;

use crate::pooler;
