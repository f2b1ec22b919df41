//! The tables and functions that locktop installs, for tasks and for all that compete for them.
//!
//! They are in one schema, `locktop` unless another is named, and are recognized by what the installation recorded there:
//! a comment on the schema and on its table of versions, and a list of all created objects, with a hash of each
//! function's body. A schema without those marks is not locktop's, whatever its name, and is never changed; nor is
//! anything in locktop's schema that is not on the list.
//!
//! A change is one transaction: it happens completely or not at all. Versions are applied in order, each once.

mod change;
mod error;
mod place;
mod purge;
mod rights;
mod script;
mod state;
#[cfg(test)]
mod strict;

pub use change::{Contents, Installed, contents, install, install_up_to, remove};
pub use error::SchemaError;
pub use error::words;
pub use locktop_locks::{NameError, SchemaName};
pub use place::Schema;
pub use purge::{Log, Old, purge, purgeable};
pub use script::{LATEST, script};
pub use state::{Found, Object, State, state};
