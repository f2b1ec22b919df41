//! Whose code runs when locktop looks and acts: an ordinary role leaves everything in its tables that a server would evaluate, and
//! whatever is called says so in the server's log, with who it ran as. Nothing may be called unless the role is trusted.
//!
//! What cannot be done by such a role has no test: event triggers, base types with an input or output function of one's own, foreign
//! data wrappers, operator classes and untrusted languages take a superuser; nobody can put anything into another session's
//! `pg_temp`; a virtual generated column (18) refuses functions and types of users.

mod actions;
mod changes;
mod checked;
mod commands;
mod detection;
mod forged;
pub(crate) mod ground;
mod hidden;
mod looks;
mod names;
mod owners;
mod path;
mod race;
mod rows;
mod screens;
mod shared;
mod stored;

use crate::action::stage;
use crate::{binary, dashboard, faults, pooler, support};
