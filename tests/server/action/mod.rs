//! What the executor does to real servers, and above all what it does not.

mod blocks;
mod consequences;
mod crowded;
mod encodings;
mod identity;
mod kept;
mod pooled;
mod published;
#[cfg(feature = "redis")]
mod redis;
mod rights;
mod slow;
pub(crate) mod stage;
mod steps;
mod successor;
#[path = "../../support/suite.rs"]
mod support;
mod tables;
mod tcp;

use crate::pooler;
