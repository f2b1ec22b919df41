//! Adapters: the job systems of others, as data. A file says how their tables are told, what is read of them and what can be known of a
//! worker; nothing here is code of one system. `docs/dev/adapter-format.md` is the manual of the format.

mod action;
mod board;
mod definition;
mod evidence;
mod installation;
mod part;
mod presence;
mod rows;
#[cfg(test)]
pub(crate) mod sample;
mod state;
mod template;
mod zone;

pub use action::{Action, ActionKind, Value, Values};
pub use board::{
    Board, Count, JobRow, OtherLeaseRow, QueueRow, QueueState, ScheduleRow, ScheduleState, TermState, Watch,
    WorkerRow, WorkerState,
};
pub use definition::{
    Adapter, ColumnKind, Evidence, Limit, Need, Query, Setting, TableName, TableRule, Version,
};
pub use evidence::{JobFacts, Judged, KeySeen, judge};
pub use installation::{Choice, Installation, Reading, Rehearsal, Tried};
pub use part::{Column, Part, Parts, ValueKind};
pub use presence::{Presence, connected, counted};
pub use rows::{AdapterLease, AdapterSchedule, Depth, InstallationRows, Job, PartRows, Paused, Worker};
pub use state::{Proof, State};
pub use template::{Piece, Template, Words};
pub use zone::offset;

/// Rows of a part that are kept; a query is to bring one more where there are more (`{limit}`).
pub const ROWS: usize = 500;
/// The states that a query may tell.
pub const STATES: [&str; 7] = ["running", "due", "scheduled", "retry", "blocked", "failed", "done"];
/// Rows that are counted at most (`{most}` is one more).
pub const COUNTED: u64 = 10_000;
