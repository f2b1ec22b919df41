//! The session of one worker, which takes scheduled tasks and items of the work queue.
//!
//! A task is run by the session that holds its advisory lock; an item, by the session that its row names. That session
//! is the [`WorkSession`], a connection of its own. While it lasts, no other session takes its work. When it ends, for
//! any reason, others may, and **the work has to stop**: [`WorkSession::ended`] reports it at once. A heartbeat detects
//! a job that was ended by another session while the connection is intact.
//!
//! Taking work is committed before the work begins, and the work runs on other connections, so that no transaction
//! stays open during a job. A finish is fenced: it counts only if the server still has the job as running in this
//! session and in this attempt.
//!
//! ```no_run
//! # use locktop_tasks::work_session::*; use locktop_locks::SchemaName; use pg_connect::conninfo::ConnInfo;
//! # async fn example(info: ConnInfo) -> Result<(), Box<dyn std::error::Error>> {
//! let id: WorkerId = "worker-1".parse()?;
//! let mut session = WorkSession::open(&info, &SchemaName::default(), &id, &Source::ALL).await?;
//! session.take_name().await?; // nobody else on this schema is called so while it lasts
//! for job in session.fetch(Source::Tasks, 2).await? {
//!     println!("{}: {:?}", job.name, job.json);
//!     let counted = session.finish(&job, Finish::Completed).await?;
//!     assert!(counted, "somebody recovered it meanwhile");
//! }
//! # Ok(()) }
//! ```

mod error;
mod job;
mod open;
mod session;
mod source;
mod worker_id;

pub use error::{Namesake, OpenError, SessionError};
pub use job::{Finish, Job, Ours, Purged, Requeued};
pub use session::WorkSession;
pub use source::{News, Source, Types};
pub use worker_id::{WorkerId, WorkerIdError};
