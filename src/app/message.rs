//! Everything that can happen to the screens, and everything they can ask for.

use std::path::PathBuf;
use std::sync::Arc;

use super::keymap::Action;
use super::panes::Pane;
use crate::keys::Key;
use crate::model::adapter::Parts;
use crate::model::alert::Ways;
use crate::model::expected::ExpectedBlocker;
use crate::model::plan::{ActionCommand, RecoveryPlan, Report, Request};
use crate::model::timeline::{PastView, Step};
use crate::model::view::{TargetId, View};

/// Something that has happened, told to the screens.
#[derive(Debug, Clone)]
pub enum Message {
    /// A newer view of a server.
    View(TargetId, Arc<View>),
    /// A key was pressed, not released.
    Key(Key),
    /// Text was pasted: it is typed into an open prompt, and means nothing anywhere else.
    Paste(String),
    /// A mouse button was pressed on something.
    Click(Spot),
    /// The wheel was turned, over a table if it was over one: down when positive.
    Wheel(Option<Pane>, isize),
    /// The terminal has another size: columns and rows.
    Resize(u16, u16),
    /// What would be recovered, for the request with this number; or in one line why that cannot be told.
    RecoveryPlanned(u64, Result<Arc<RecoveryPlan>, String>),
    /// So many targets of the command with this number have an answer.
    Progress(u64, usize),
    /// What came of a command is known for each target.
    Reported(Arc<Report>),
    /// Where a step in time led; none where that is now. Or in a line why it led nowhere.
    Past(Result<Option<Arc<PastView>>, String>),
    /// What was written and where to, or why not.
    Saved(String),
    /// A frame is on the screen, and whoever sits there had a moment to see it: the revision of the dialog in it.
    Drawn(Option<u64>),
    /// The row under the cursor has been the same for half a second since the exchange of this number.
    Settled(u64),
    /// Time went by. The seconds since the last view arrived, by the clock of this machine.
    Tick(f64),
}

/// What is at a place of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// A row of a table: a position in the pane's rows.
    Row(Pane, usize),
    /// The heading of a column, by its name.
    Heading(Pane, &'static str),
    /// A key in the footer, by what it does.
    Key(Action),
}

/// Something the outside is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// End the program, and give the terminal back.
    Quit,
    /// Give the terminal back until somebody continues the program.
    Suspend,
    /// Draw everything anew: something else has written to the terminal.
    Clear,
    /// Poll at once, without waiting for the next time.
    Refresh,
    /// Poll at another interval, in seconds.
    SetInterval(f64),
    /// The screen shows these parts of job systems of others, and no other.
    Watch(Parts),
    /// Go to another look, from the view with this number; it comes as [`Message::Past`].
    Go {
        /// [`View::id`] of the view that the step is taken from.
        from: u64,
        /// How far, or to what.
        step: Step,
    },
    /// Let a recording go on by itself, so many times as fast as it was; none for standing still.
    Play(Option<f64>),
    /// Write the looks that are kept to this file; what came of it comes as [`Message::Saved`].
    Save(PathBuf),
    /// Take these words among the events.
    Note(String),
    /// From now on these blockers are expected, and no others.
    Expect {
        /// All blockers that are expected from now on.
        expected: Arc<[ExpectedBlocker]>,
        /// Those that are added to the config file, too; what came of that comes as [`Message::Saved`].
        written: Vec<ExpectedBlocker>,
    },
    /// Put this text on the terminal's clipboard.
    Copy(String),
    /// Tell whoever does not look, in these ways but for the title.
    Alert(Ways, String),
    /// The title of the terminal's window.
    Title(String),
    /// Switch mouse reporting on or off.
    Mouse(bool),
    /// Look what would be recovered; the number comes back with the answer.
    PlanRecovery {
        /// The server that is asked.
        server: TargetId,
        /// A number that the answer comes back with.
        number: u64,
        /// The schema of the task tables, as the catalog has it.
        schema: String,
        /// Which executions are to be recovered.
        request: Arc<Request>,
    },
    /// Do what somebody has confirmed, target by target.
    Act(Arc<ActionCommand>),
}

/// What a message led to: what is asked for, and whether to draw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update {
    /// What the outside is asked to do, in order.
    pub effects: Vec<Effect>,
    /// Whether anything on the screen may have changed.
    pub redraw: bool,
}

impl Update {
    /// Nothing changed, and nothing is asked for.
    pub fn none() -> Self {
        Self::default()
    }

    /// Something on the screen changed, and nothing is asked for.
    pub fn redraw() -> Self {
        Self { effects: Vec::new(), redraw: true }
    }

    /// The outside is asked to do something, and the screen shows it.
    pub fn effect(effect: Effect) -> Self {
        Self { effects: vec![effect], redraw: true }
    }
}
