//! The job systems of others: what `locktop adapters` finds, and their rows in a snapshot.

mod rows;
mod survey;

pub(super) use rows::{InstallationDocument, installations, lease_of, name, queue};
pub use survey::adapters;
