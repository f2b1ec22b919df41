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
mod purge;
mod script;
mod state;
#[cfg(test)]
mod strict;

use crate::trust::TrustedOwners;

pub use change::{Contents, Installed, contents, install, install_up_to, remove};
pub use error::{SchemaError, words};
pub use locktop_locks::{NameError, SchemaName};
pub use purge::{Log, Old, purge, purgeable};
pub use script::{LATEST, script};
pub use state::{Found, Object, State, state};

/// A schema of locktop's, and the roles that may own what is in it, in addition to superusers and the connected role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// The schema's name, as in the catalog.
    pub name: SchemaName,
    /// The roles that may own it and what is in it.
    pub trusted_owners: TrustedOwners,
}

impl Schema {
    /// The schema's name in double quotes, for a statement.
    #[must_use]
    pub fn quoted(&self) -> String {
        self.name.quoted()
    }

    /// A statement that fails if anything in the schema belongs to another user, and otherwise returns no row. It precedes
    /// whatever reads, calls or writes there, in the same transaction: only the owner of all of it can change any of it.
    #[must_use]
    pub fn guard(&self) -> String {
        self.trusted_owners.schema_guard(&self.name.literal())
    }
}

impl From<SchemaName> for Schema {
    fn from(name: SchemaName) -> Self {
        Self { name, trusted_owners: TrustedOwners::default() }
    }
}

impl From<&SchemaName> for Schema {
    fn from(name: &SchemaName) -> Self {
        name.clone().into()
    }
}
