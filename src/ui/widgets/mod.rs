//! The pieces that panes are made of.

pub(super) mod sparkline;
pub(super) mod table;
