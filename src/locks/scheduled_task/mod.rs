//! The session of one worker that takes scheduled tasks.
//!
//! A task is run by whoever holds its advisory lock, which belongs to a session: the [`TaskSession`], a connection of its
//! own. As long as it lasts nobody else takes the task; when it ends, by whatever cause, the lock is free and **the work has
//! to stop**. [`TaskSession::ended`] says so at once. A heartbeat finds out what a connection that still stands cannot
//! tell: that somebody closed the execution in our place.
//!
//! What is taken is committed before the work begins, and the work runs on other connections, so that no transaction
//! is open for as long as a task takes. A finish is fenced: it counts only for an execution that the log still has as running
//! in this very session.
//!
//! ```no_run
//! # use locktop::{locks::scheduled_task::*, pg::conninfo::ConnInfo, schema::SchemaName};
//! # async fn example(info: ConnInfo) -> Result<(), Box<dyn std::error::Error>> {
//! let id: WorkerId = "worker-1".parse()?;
//! let mut session = TaskSession::open(&info, &SchemaName::default(), &id).await?;
//! for execution in session.fetch(2).await? {
//!     println!("{}: {:?}", execution.task_name, execution.payload);
//!     let counted = session.finish(&execution, Finish::Completed).await?;
//!     assert!(counted, "somebody recovered it meanwhile");
//! }
//! # Ok(()) }
//! ```

mod error;
mod execution;
mod open;
mod session;
mod worker_id;

pub use error::{OpenError, SessionError};
pub use execution::{Execution, Finish};
pub use session::{News, TaskSession};
pub use worker_id::{WorkerId, WorkerIdError};
