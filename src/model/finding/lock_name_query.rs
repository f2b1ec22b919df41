//! Names that could not be learned.

use super::{Finding, Severity, Subject};
use crate::model::Text;

/// One finding for each note: a query of the config by its place there, and why it brought nothing.
pub fn findings(notes: &[Text]) -> Vec<Finding> {
    let finding = |note: &Text| Finding::new("lock_name_query", Severity::Info, note, Subject::Server);
    notes.iter().map(finding).collect()
}
