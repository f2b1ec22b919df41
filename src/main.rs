//! `locktop`: reads the command line and does what it says.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // A panic is a bug: its message should be worth reporting.
    if let Err(error) = color_eyre::install() {
        drop(error);
    }
    locktop::cli::run(&locktop::cli::Cli::parse())
}
