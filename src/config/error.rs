use std::path::PathBuf;

use locktop_base::file::of_user;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl Position {
    pub(crate) fn of(source: &str, offset: usize) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    pub at: Position,
    /// What was found and what was expected, in one line.
    pub message: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {what} {}: {error}", .path.display())]
    Unreadable {
        /// The kind of file, such as `the config file`.
        what: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    /// The file has mistakes. Printed as one line each, `file:line:column: message`.
    #[error("{}", lines(.file, .mistakes))]
    Mistakes {
        file: PathBuf,
        /// In the order of the file.
        mistakes: Vec<Mistake>,
    },
    /// Several files are invalid; the message has the lines of each.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The path. The file need not exist.
    pub path: PathBuf,
    /// Whether the user named the file, so that it must exist.
    pub named: bool,
}

/// The file of `--config`, otherwise of `LOCKTOP_CONFIG`, otherwise `locktop/config.toml` in `XDG_CONFIG_HOME` or
/// `~/.config`. `None` if there is no home directory either.
pub fn locate(flag: Option<PathBuf>, env: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
    let named = flag.or_else(|| env("LOCKTOP_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    if let Some(path) = named {
        return Some(Location { path, named: true });
    }
    let path = of_user("XDG_CONFIG_HOME", ".config", env)?.join("locktop/config.toml");
    Some(Location { path, named: false })
}
