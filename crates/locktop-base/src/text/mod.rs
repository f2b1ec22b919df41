//! Text for a screen: its width, cutting it, and making untrusted text safe.
//!
//! Text from the server goes through [`one_line`] (or [`lines`] if it may take several) before it is measured, cut or
//! drawn. All widths are those of `ratatui`'s buffer: the sum over the graphemes, see [`width`].

mod numbers;
mod one_line;
mod sql;
mod width;

#[cfg(test)]
mod tests;

pub use numbers::{age, count, count_short, duration, parse_duration, seconds_in};
pub use one_line::{is_unseen, lines, list, one_line, one_line_prefix};
pub use sql::{identifier, literal, place};
pub use width::{ASCII_ELLIPSIS, Align, ELLIPSIS, ascii, fit, fit_middle, fit_pad, fit_with, width};
