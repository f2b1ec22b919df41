//! Questions on the controlling terminal: passwords, and confirmations.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

use pg_connect::conninfo::{ConnInfo, Secret};
use pg_connect::error::ConnectError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PasswordPrompt {
    /// `-w`: never, even if the server requires one.
    Never,
    /// If the server requires a password and none was found.
    #[default]
    IfNeeded,
    /// `-W`: before connecting, even if the server requires none.
    Always,
}

/// Asks for a password on the controlling terminal, without echo. `note` is a line above the prompt with the reason. `None`
/// if there is no terminal; the error is [`io::ErrorKind::Interrupted`] if the user cancels.
fn ask_secret(what: &str, note: Option<&str>) -> io::Result<Option<Secret>> {
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

/// Asks for the password before the first connection (`-W`). It is used for all connections.
pub(super) fn ask_first(info: ConnInfo, prompt: PasswordPrompt) -> Result<ConnInfo, ConnectError> {
    if prompt != PasswordPrompt::Always {
        return Ok(info);
    }
    ask_for_user(&info, None)?
        .ok_or_else(|| ConnectError::other("-W asks for a password, and there is no terminal to ask on"))
}

/// Asks for the password because the server requires one and none was found. `None` if a password would not help.
pub(super) fn ask_after(
    info: &ConnInfo,
    prompt: PasswordPrompt,
    error: &ConnectError,
) -> Result<Option<ConnInfo>, ConnectError> {
    if prompt == PasswordPrompt::Never {
        return Ok(None);
    }
    if let Some(key) = error.needs_key_password() {
        let what = format!("the key {}", key.display());
        return Ok(ask_for_secret(&what, None)?.map(|secret| info.clone().with_key_password(secret)));
    }
    if prompt != PasswordPrompt::IfNeeded || !error.needs_password() {
        return Ok(None);
    }
    Ok(ask_for_user(info, error.password_note())?.filter(ConnInfo::has_password))
}

fn ask_for_user(info: &ConnInfo, note: Option<&str>) -> Result<Option<ConnInfo>, ConnectError> {
    let secret = ask_for_secret(&format!("user {}", info.user()), note)?;
    Ok(secret.map(|secret| info.clone().with_password(secret)))
}

fn ask_for_secret(what: &str, note: Option<&str>) -> Result<Option<Secret>, ConnectError> {
    ask_secret(what, note).map_err(|error| {
        ConnectError::other(format!("no password for {}: {error}", crate::text::one_line(what)))
    })
}

/// Shows lines on the controlling terminal and asks. Only `y` and `yes` confirm. Input typed before the question is
/// discarded. An error is that there is no terminal.
pub(super) fn ask(lines: &[String], question: &str) -> io::Result<bool> {
    Ok(is_yes(&answer(lines, &format!("{question} [y/N]"))?))
}

/// Like `ask`, but only `word` confirms.
pub(super) fn ask_for(lines: &[String], question: &str, word: &str) -> io::Result<bool> {
    Ok(answer(lines, question)?.trim_end_matches(['\r', '\n']) == word)
}

fn answer(lines: &[String], question: &str) -> io::Result<String> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    for line in lines {
        writeln!(terminal, "{line}")?;
    }
    tcflush(&terminal, QueueSelector::IFlush)?;
    write!(terminal, "{question} ")?;
    terminal.flush()?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer)?;
    Ok(answer)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::{is_yes, read_line};

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

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, yes) in [
            ("y\n", true),
            ("YES\r\n", true),
            (" Yes ", true),
            ("", false),
            ("\n", false),
            ("n\n", false),
            ("yess\n", false),
        ] {
            assert_eq!(is_yes(answer), yes, "{answer:?}");
        }
    }
}
