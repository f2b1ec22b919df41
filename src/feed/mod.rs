//! Every snapshot passes here before anybody sees it: what it adds to the ones before is worked out, and the result
//! is published as a [`View`](crate::model::view::View), of which the newest wins.

mod diff;
pub mod digest;
pub mod event_sender;
pub mod history;
mod journal;
pub mod learn;
mod line;
pub mod lines;
pub mod live;
pub mod once;
pub mod record;
pub mod recount;
pub mod replay;
pub mod report;
pub mod series;
pub mod spare;
pub mod throttle;
