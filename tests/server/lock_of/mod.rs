//! The locks of statements, as the server shows them and as `locktop lock-of` reports them.

mod command;
mod compare;
mod list;
#[path = "../../support/suite.rs"]
mod support;
mod waits;
