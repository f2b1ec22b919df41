//! The command `locktop`; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    glibc_malloc::fix_mmap_threshold();
    // Installs the handler for panics, whose message goes into a bug report.
    if let Err(error) = color_eyre::install() {
        drop(error);
    }
    let line: Vec<_> = std::env::args_os().collect();
    match locktop::cli::parse(line.iter().cloned()) {
        Ok(cli) => locktop::cli::run(&cli),
        Err(error) => locktop::cli::explain(&error, &line),
    }
}
