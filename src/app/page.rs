//! What lies over a screen: pages that Escape takes away, and the prompt.

use tui_input::Input;

use super::panes::{Pane, RowId};
use super::related::Related;

/// A page over the screen, which takes the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// All keys, what the words mean, and the connection.
    Help {
        /// Lines scrolled out at the top.
        scroll: usize,
        /// Only the entries that have this in them are shown; all where it is empty.
        search: String,
    },
    /// Everything that is known about one row.
    Detail {
        /// What the row is about.
        subject: RowId,
        /// Lines scrolled out at the top.
        scroll: usize,
    },
    /// Rows that belong to a row, as a list to go along.
    Related {
        /// The ways from there, as they were when it was opened.
        links: Vec<Related>,
        /// Position of the selected one in the list.
        at: usize,
    },
    /// The columns to sort by, as a list to choose from.
    Sort {
        /// The table that is sorted.
        pane: Pane,
        /// Position of the selected one in the list; behind the last column is the usual order.
        selected: usize,
    },
}

/// What is being typed into the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// A filter over the rows of a pane.
    Filter,
    /// What to look for in the help.
    Search,
    /// A time of day to go to.
    Time,
    /// A file for the looks that are kept.
    Save,
    /// Words to be kept among the events.
    Note,
}

/// A filter or a time that is being typed.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// What the line is for.
    pub typing: Typing,
    /// The pane that a filter is for, and that had the focus.
    pub pane: Pane,
    /// The line as it was typed so far, with its cursor.
    pub input: Input,
    /// The filter or search before, which Escape brings back.
    pub before: String,
    /// What is wrong with the line.
    pub error: Option<String>,
}
