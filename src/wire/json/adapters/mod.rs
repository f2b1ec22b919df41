mod rows;
mod survey;

pub(super) use rows::{installations, lease_of, name, queue};
pub use survey::adapters;
