//! `locktop`: reads the command line and does what it says.

use std::process::ExitCode;

fn main() -> ExitCode {
    glibc_malloc::fix_mmap_threshold();
    // A panic is a bug: its message should be worth reporting.
    if let Err(error) = color_eyre::install() {
        drop(error);
    }
    let line: Vec<_> = std::env::args_os().collect();
    match locktop::cli::parse(line.iter().cloned()) {
        Ok(cli) => locktop::cli::run(&cli),
        Err(error) => locktop::cli::explain(&error, &line),
    }
}
