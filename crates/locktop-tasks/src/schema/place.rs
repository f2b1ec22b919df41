use crate::trust::TrustedOwners;
use locktop_locks::SchemaName;

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

impl From<&SchemaName> for Schema {
    fn from(name: &SchemaName) -> Self {
        Self { name: name.clone(), trusted_owners: TrustedOwners::default() }
    }
}
