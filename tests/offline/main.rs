//! Tests that need no server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may"
)]

mod architecture;
mod config;
mod cycles;
mod fuzz;
mod manual;
#[path = "../support/manual.rs"]
mod manual_pages;
mod monitoring;
mod observed;
mod plain_words;
#[path = "../support/plain_words.rs"]
mod plain_words_of;
mod proto;
mod regression;
#[path = "../support/shapes.rs"]
mod shapes;
#[path = "../support/source.rs"]
mod source;
mod statements;
mod strings;
mod text_on_screen;
