//! Mistakes in the config file.

use std::path::PathBuf;

/// A place in the file, both numbers from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line of the file, from 1.
    pub line: usize,
    /// The column, from 1, in characters of the line.
    pub column: usize,
}

impl Position {
    /// The place of a byte offset.
    pub(crate) fn of(source: &str, offset: usize) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

/// One mistake: where, what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Where the mistake begins.
    pub at: Position,
    /// What was found and what was expected, in one line.
    pub message: String,
}

/// A config that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {what} {}: {error}", .path.display())]
    Unreadable {
        /// What it is for: `the config file`.
        what: &'static str,
        /// The file that cannot be read.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file has mistakes in it: one line for each, `file:line:column: what`.
    #[error("{}", lines(.file, .mistakes))]
    Mistakes {
        /// The file that the mistakes are in.
        file: PathBuf,
        /// In the order of the file.
        mistakes: Vec<Mistake>,
    },
    /// Several files cannot be used: the lines of each.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<ConfigError>),
}

fn lines(file: &std::path::Path, mistakes: &[Mistake]) -> String {
    let line = |mistake: &Mistake| {
        let Mistake { at: Position { line, column }, message } = mistake;
        format!("{}:{line}:{column}: {message}", file.display())
    };
    mistakes.iter().map(line).collect::<Vec<_>>().join("\n")
}
