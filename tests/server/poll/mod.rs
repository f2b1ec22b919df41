//! The poll against real servers of every supported version: what it sees, what it survives, and what it
//! reports when it fails.

mod backends;
mod catalogs;
mod feed;
mod helpers;
mod known;
mod lock_table;
mod locks;
mod loss;
mod raw;
mod rights;
mod settings;
mod setup;
mod signals;
mod snapshot;
mod text;
mod timeout;
mod transaction_pool;
mod views;

use crate::support;
