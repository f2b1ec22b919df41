use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use rustix::termios::{QueueSelector, tcflush};

/// Shows lines on the controlling terminal and asks. Only `y` and `yes` confirm. Input typed before the question is
/// discarded.
///
/// # Errors
/// There is no controlling terminal.
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
    use super::is_yes;

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
