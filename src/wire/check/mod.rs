//! Checks for monitoring systems: measures, ranges, a status, a line for people, and performance data.
//!
//! Source: <https://www.monitoring-plugins.org/doc/guidelines.html>

mod judge;
mod measure;
mod measured;
mod range;
mod render;
#[cfg(test)]
mod tests;

pub use judge::{Judged, Limits, Report, Status, names};
pub use measure::{MEASURES, Measure, measured_parts};
pub use measured::Measured;
pub use range::{Range, RangeError};
pub use render::{CheckFormat, render};
