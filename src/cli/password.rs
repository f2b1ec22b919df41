use std::fs::File;
use std::io::{self, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use pg_connect::conninfo::Secret;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prompt {
    /// `-w`: never, even if the server requires one.
    Never,
    /// If the server requires a password and none was found.
    #[default]
    IfNeeded,
    /// `-W`: before connecting, even if the server requires none.
    Always,
}

/// Asks for a password on the controlling terminal, without echo. `note` is a line above the prompt with the reason. `None`
/// if there is no terminal.
///
/// # Errors
/// The terminal cannot be used, or the user cancels ([`io::ErrorKind::Interrupted`]).
pub(super) fn ask(what: &str, note: Option<&str>) -> io::Result<Option<Secret>> {
    let Ok(mut terminal) = File::options().read(true).write(true).open("/dev/tty") else { return Ok(None) };
    let before = tcgetattr(&terminal)?;
    let mut quiet = before.clone();
    // Signals are off too: Ctrl-C would end the program with echo still off.
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
    quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(&terminal, OptionalActions::Flush, &quiet)?;
    let restore = Restore { terminal: terminal.try_clone()?, before };
    if let Some(note) = note {
        writeln!(terminal, "{}\r", crate::text::one_line(note))?;
    }
    write!(terminal, "Password for {}: ", crate::text::one_line(what))?;
    terminal.flush()?;
    let line = read_line(&mut terminal);
    drop(restore);
    writeln!(terminal)?;
    line.map(|line| Some(Secret::new(line)))
}

struct Restore {
    terminal: File,
    before: Termios,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // A failure cannot be reported anywhere.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Reads to the end of the line, with the line editing of a terminal.
fn read_line(input: &mut impl Read) -> io::Result<String> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const CTRL_U: u8 = 21;
    const CTRL_BACKSLASH: u8 = 28;
    const DELETE: u8 = 127;
    let given_up = || io::Error::new(io::ErrorKind::Interrupted, "canceled at the prompt");
    let mut line = Vec::new();
    for byte in io::BufReader::new(input).bytes() {
        match byte? {
            b'\r' | b'\n' => {
                return String::from_utf8(line).map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidData, "the password is not valid UTF-8")
                });
            }
            CTRL_C | CTRL_BACKSLASH => return Err(given_up()),
            CTRL_D if line.is_empty() => return Err(given_up()),
            CTRL_U => line.clear(),
            BACKSPACE | DELETE => {
                // Remove a whole UTF-8 character: its continuation bytes, then its first byte.
                while line.pop().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {}
            }
            byte => line.push(byte),
        }
    }
    Err(given_up())
}

#[cfg(test)]
mod tests {
    use super::read_line;

    #[test]
    fn edits_the_line() {
        for (typed, read) in [
            ("secret\r", Some("secret")),
            ("secret\nmore", Some("secret")),
            ("\n", Some("")),
            ("wrong\u{15}right\n", Some("right")),
            ("pässx\u{7f}\n", Some("päss")),
            ("ä\u{8}b\n", Some("b")),
            ("\u{7f}a\n", Some("a")),
            ("sec\u{3}", None),
            ("\u{4}", None),
            ("cut off", None),
        ] {
            assert_eq!(read_line(&mut typed.as_bytes()).ok().as_deref(), read, "{typed:?}");
        }
    }
}
