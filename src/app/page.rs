use tui_input::Input;

use super::panes::{Pane, RowId};
use super::related::RelatedLink;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    Help {
        scroll: usize,
        /// Only entries that contain this text are shown; all if it is empty.
        search: String,
    },
    Detail {
        subject: RowId,
        scroll: usize,
    },
    Related {
        /// The links at the time when the page was opened.
        links: Vec<RelatedLink>,
        at: usize,
    },
    Sort {
        pane: Pane,
        /// Position of the selected entry; the position after the last column is the default order.
        selected: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    Filter,
    Search,
    Time,
    Save,
    Note,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub typing: PromptKind,
    /// The pane that a filter is for, and that had the focus.
    pub pane: Pane,
    pub input: Input,
    /// The previous filter or search, which Escape restores.
    pub before: String,
    pub error: Option<String>,
}
