//! The effects of the executor on real servers, and above all the absence of others.

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
