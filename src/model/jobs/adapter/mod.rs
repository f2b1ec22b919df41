//! Adapters: the job systems of others, as data. A file describes how their tables are identified, what is read of them
//! and what can be known of a worker; there is no code for a particular system. `docs/dev/adapter-format.md` describes the
//! format.

mod board;
mod definition;
mod installation;
mod presence;
mod rows;
#[cfg(test)]
pub(crate) mod sample;
mod template;

pub use crate::model::job_state::{JobState, Proof};
pub use board::{
    AdapterBoard, AdapterWatch, Count, JobRow, QueueRow, QueueState, ScheduleRow, ScheduleState, WorkerRow,
    WorkerState,
};
pub(crate) use definition::evidence_rows;
pub use definition::{
    ActionKind, ActionValue, ActionValues, Adapter, AdapterAction, AdapterColumnKind, AdapterQuery, Evidence,
    RequiredColumn, Setting, TableName, TableRule, Version,
};
pub use installation::{Installation, QueryChoice, Rehearsal, TrialReading, Tried};
pub use presence::{Presence, connected, counted};
pub(crate) use rows::part_rows;
pub use rows::{
    AdapterLease, AdapterSchedule, Depth, InstallationRows, Job, Part, Parts, Paused, Worker, offset,
};
pub use template::{Template, TemplatePiece, TemplateWords};

/// Rows kept of a part; a query should return one more if there are more (`{limit}`).
pub const ROWS: usize = 500;
pub const STATES: [&str; 7] = ["running", "due", "scheduled", "retry", "blocked", "failed", "done"];
/// Rows counted at most (`{most}` is one more).
pub const COUNTED: u64 = 10_000;
