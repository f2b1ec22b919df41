//! No code of an untrusted role runs when locktop polls and acts: an ordinary role puts everything into its
//! tables that a server would evaluate, and each function that is called writes to the server's log, with the
//! role that it ran as. Nothing may be called unless the role is trusted.
//!
//! Attacks that are impossible for such a role have no test: event triggers, base types with an input or
//! output function of one's own, foreign data wrappers, operator classes and untrusted languages take a
//! superuser; no role can put anything into another session's `pg_temp`; a virtual generated column (18)
//! refuses functions and types of users.

mod actions;
mod changes;
mod checked;
mod commands;
mod detection;
mod forged;
pub(crate) mod ground;
mod hidden;
mod names;
mod owners;
mod path;
mod race;
mod rows;
mod screens;
mod shared;
mod snapshots;
mod stored;

use crate::action::stage;
use crate::{binary, dashboard, faults, pooler, support};
