pub mod check;
pub mod csv;
pub mod json;
pub mod lock_of;
pub mod record;
pub mod report;
#[cfg(test)]
pub(crate) mod sample;
pub mod table;
