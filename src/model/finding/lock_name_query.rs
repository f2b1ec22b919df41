use super::{Finding, Severity, Subject};
use crate::model::Text;

/// One finding for each note: a query of the config by its position there, and why it returned nothing.
pub fn findings(notes: &[Text]) -> Vec<Finding> {
    let finding = |note: &Text| Finding::new("lock_name_query", Severity::Info, note, Subject::Server);
    notes.iter().map(finding).collect()
}
