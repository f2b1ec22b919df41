mod rows;
mod survey;

pub(super) use rows::{InstallationDocument, installations, lease_of, name, queue};
pub use survey::adapters;
