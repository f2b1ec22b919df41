//! `host=db port=5432 options='-c x=y'`: libpq's key=value strings.
//!
//! Source: "Keyword/Value Connection Strings" in the libpq chapter. Errors give a position and never repeat the text,
//! because a badly quoted password would be in it.

use super::super::error::ConnInfoError;

pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, ConnInfoError> {
    let mut scanner = Scanner { chars: text.chars().collect(), at: 0 };
    let mut settings = Vec::new();
    loop {
        scanner.skip_space();
        if scanner.peek().is_none() {
            return Ok(settings);
        }
        settings.push(scanner.setting()?);
    }
}

/// C's `isspace`: a space of another script does not end a value.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
}

impl Scanner {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        found
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn setting(&mut self) -> Result<(String, String), ConnInfoError> {
        let start = self.at;
        let mut key = String::new();
        while let Some(c) = self.peek().filter(|c| *c != '=' && !is_space(*c)) {
            key.push(c);
            self.at += 1;
        }
        self.skip_space();
        if self.next() != Some('=') {
            return Err(ConnInfoError::Syntax(format!(
                "no \"=\" after the word at character {} (a value with spaces in it is written in single quotes)",
                start + 1
            )));
        }
        self.skip_space();
        let value = if self.peek() == Some('\'') { self.quoted()? } else { self.bare() };
        Ok((key, value))
    }

    fn bare(&mut self) -> String {
        let mut value = String::new();
        while let Some(c) = self.peek().filter(|c| !is_space(*c)) {
            self.at += 1;
            if c == '\\' {
                value.extend(self.next());
            } else {
                value.push(c);
            }
        }
        value
    }

    fn quoted(&mut self) -> Result<String, ConnInfoError> {
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            match self.next() {
                Some('\'') => return Ok(value),
                Some('\\') => value.extend(self.next()),
                Some(c) => value.push(c),
                None => {
                    return Err(ConnInfoError::Syntax(format!(
                        "the quote at character {} is not closed",
                        start + 1
                    )));
                }
            }
        }
    }
}
