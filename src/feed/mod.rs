//! Turns every snapshot into a [`View`](crate::model::view::View), using the snapshots before it, and publishes it. The
//! newest view replaces older ones.

mod diff;
pub mod digest;
pub mod event_sender;
pub mod history;
mod journal;
pub mod learn;
pub mod live;
pub mod once;
pub mod record;
pub mod replay;
pub mod report;
pub mod series;
pub mod spare;
pub mod throttle;
