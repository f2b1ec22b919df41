//! Which schema, and whose it may be.

use crate::trust::TrustedOwners;
use locktop_locks::SchemaName;

/// A schema of locktop's, and the roles that may own what is in it beside superusers and the role that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// The schema's name, as the catalog has it.
    pub name: SchemaName,
    /// Who may own it and what is in it.
    pub trusted_owners: TrustedOwners,
}

impl Schema {
    /// The schema's name in double quotes, for a statement.
    #[must_use]
    pub fn quoted(&self) -> String {
        self.name.quoted()
    }

    /// A statement that fails where anything in it belongs to another user, and otherwise has no row. It goes before whatever reads,
    /// calls or writes there, in the same transaction: who owns all of it is the only one who can change any of it.
    #[must_use]
    pub fn guard(&self) -> String {
        self.trusted_owners.schema_guard(&self.name.literal())
    }
}

impl From<&SchemaName> for Schema {
    fn from(name: &SchemaName) -> Self {
        Self { name: name.clone(), trusted_owners: TrustedOwners::default() }
    }
}
