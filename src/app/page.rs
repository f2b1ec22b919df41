//! What lies over a screen: pages that Escape takes away, and the prompt.

use tui_input::Input;

use super::panes::{Pane, RowId};
use super::related::Related;
use crate::model::finding::{Finding, Subject};

/// Something over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// All keys.
    Help {
        /// Lines scrolled out at the top.
        scroll: usize,
    },
    /// All findings.
    Findings {
        /// What the selected one is: findings are sorted anew at every poll.
        chosen: Option<FindingId>,
        /// Where it is, or was before it went away.
        at: usize,
    },
    /// What a finding has to say beyond its line.
    Finding {
        /// Which.
        id: FindingId,
        /// Lines scrolled out at the top.
        scroll: usize,
    },
    /// Everything about one row.
    Detail {
        /// Which.
        subject: RowId,
        /// Lines scrolled out at the top.
        scroll: usize,
    },
    /// What belongs to a row.
    Related {
        /// The ways from there, as they were when it was opened.
        links: Vec<Related>,
        /// Position of the selected one.
        at: usize,
    },
    /// The columns to sort by.
    Sort {
        /// Of which table.
        pane: Pane,
        /// Position of the selected one.
        selected: usize,
    },
}

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// A filter.
    Filter,
    /// A time to go to.
    Time,
    /// A file for the looks that are kept.
    Save,
    /// Words to be kept among the events.
    Note,
}

/// A filter or a time that is being typed.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// What it is.
    pub typing: Typing,
    /// For which table.
    pub pane: Pane,
    /// The line.
    pub input: Input,
    /// The filter before, which Escape brings back.
    pub before: String,
    /// What is wrong with the line.
    pub error: Option<String>,
}

/// Which finding: the name of the check, and what it is about.
pub type FindingId = (&'static str, Subject);

/// The identity of a finding.
#[must_use]
pub fn finding_id(finding: &Finding) -> FindingId {
    (finding.check, finding.subject.clone())
}

/// Where the chosen finding is now; none when it is gone.
#[must_use]
pub fn position(findings: &[Finding], chosen: Option<&FindingId>) -> Option<usize> {
    let (check, subject) = chosen?;
    findings.iter().position(|finding| finding.check == *check && finding.subject == *subject)
}
