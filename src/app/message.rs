use std::path::PathBuf;
use std::sync::Arc;

use super::keymap::Action;
use super::panes::Pane;
use crate::keys::Key;
use crate::model::adapter::Parts;
use crate::model::finding::AlertWays;
use crate::model::past::{PastView, TimeStep};
use crate::model::plan::{ExecutorOrder, ExecutorReply};
use crate::model::thresholds::ExpectedBlocker;
use crate::model::view::{TargetId, View};

#[derive(Debug, Clone)]
pub enum Message {
    View(TargetId, Arc<View>),
    /// A key was pressed, not released.
    Key(Key),
    /// Text was pasted: it is typed into an open prompt, and ignored elsewhere.
    Paste(String),
    Click(ClickTarget),
    /// The wheel was turned, and the table under it, if any. Positive is down.
    Wheel(Option<Pane>, isize),
    /// The new size of the terminal: columns and rows.
    Resize(u16, u16),
    /// The answer to an [`Effect::Order`].
    Answer(ExecutorReply),
    /// The view after a step in time; `None` for the live view. An error has the reason in one line.
    Past(Result<Option<Arc<PastView>>, String>),
    /// The result of saving a file: its path, or why it was not written.
    Saved(String),
    /// A frame was on the screen long enough to be seen; the revision of the dialog in it.
    Drawn(Option<u64>),
    /// The row under the cursor has been the same for half a second since the exchange with this number.
    Settled(u64),
    /// A timer tick, with the seconds since the last view arrived, by the clock of this machine.
    Tick(f64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClickTarget {
    Row(Pane, usize),
    Heading(Pane, &'static str),
    Key(Action),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Quit,
    Suspend,
    /// Redraw everything: another program has written to the terminal.
    Clear,
    Refresh,
    /// Poll at this interval, in seconds.
    SetInterval(f64),
    /// The screen shows these parts of other job systems, and no others.
    Watch(Parts),
    /// Go to another snapshot, from the view with this number; the result arrives as [`Message::Past`].
    Go {
        /// [`View::id`] of the view that the step is taken from.
        from: u64,
        step: TimeStep,
    },
    /// Play the recording at this multiple of its original speed; `None` stops it.
    Play(Option<f64>),
    /// Write the snapshots in the history to this file; the result arrives as [`Message::Saved`].
    Save(PathBuf),
    Note(String),
    Expect(Arc<[ExpectedBlocker]>),
    Copy(String),
    /// Alert a user who does not watch the screen, in these ways except the title.
    Alert(AlertWays, String),
    Title(String),
    Mouse(bool),
    Order(ExecutorOrder),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update {
    pub effects: Vec<Effect>,
    pub redraw: bool,
}

impl Update {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn redraw() -> Self {
        Self { effects: Vec::new(), redraw: true }
    }

    pub fn effect(effect: Effect) -> Self {
        Self { effects: vec![effect], redraw: true }
    }
}
