//! The worker processes of a demo: how they are kept, what they are told, and what their work is.

mod crew;
mod error;
mod names;
mod orders;
mod plan;
mod waker;

pub(in crate::demo) use crew::Crew;
pub use error::TasksError;
pub(in crate::demo) use orders::{Orders, Part, Payload, Plan};
pub(in crate::demo) use plan::Ends;
pub(in crate::demo) use waker::stands_still;
