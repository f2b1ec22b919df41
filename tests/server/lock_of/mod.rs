//! What statements take, as the server shows it, and what `locktop lock-of` says of them.

mod command;
mod compare;
mod list;
#[path = "../../support/suite.rs"]
mod support;
mod waits;
