//! Keys, independent of the terminal library, so that everything above the terminal can be driven by a string such as
//! `jjK<esc>`.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// A character as typed: `K` is upper case, not `k` with a modifier.
    Char(char),
    F(u8),
    Enter,
    Esc,
    Backspace,
    Delete,
    Tab,
    /// Tab with Shift, which terminals send as a separate key.
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown key \"{0}\"; a key is one character (K), a name (esc, enter, space, pgup, f1) or either after ctrl- or alt-"
)]
pub struct KeyError(pub String);

/// Names of keys in the config, and as they are printed.
const NAMES: [(&str, &str, Code); 16] = [
    ("space", "Space", Code::Char(' ')),
    ("enter", "Enter", Code::Enter),
    ("esc", "Esc", Code::Esc),
    ("backspace", "Backspace", Code::Backspace),
    ("delete", "Delete", Code::Delete),
    ("tab", "Tab", Code::Tab),
    ("shift-tab", "Shift-Tab", Code::BackTab),
    ("up", "Up", Code::Up),
    ("down", "Down", Code::Down),
    ("left", "Left", Code::Left),
    ("right", "Right", Code::Right),
    ("pgup", "PgUp", Code::PageUp),
    ("pgdn", "PgDn", Code::PageDown),
    ("home", "Home", Code::Home),
    ("end", "End", Code::End),
    ("lt", "<", Code::Char('<')),
];

impl Key {
    pub const fn plain(code: Code) -> Self {
        Self { code, ctrl: false, alt: false }
    }

    pub const fn char(character: char) -> Self {
        Self::plain(Code::Char(character))
    }

    pub const fn ctrl(character: char) -> Self {
        Self { code: Code::Char(character), ctrl: true, alt: false }
    }

    /// Reads one key in the notation of the config: `K`, `ctrl-l`, `pgup`, `f1`, `space`.
    ///
    /// # Errors
    /// If there is no such key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let error = || KeyError(text.to_owned());
        let mut key = Self::plain(Code::Esc);
        let mut rest = text;
        loop {
            if let Some(after) = strip_prefix_ignore_case(rest, "ctrl-") {
                key.ctrl = true;
                rest = after;
            } else if let Some(after) = strip_prefix_ignore_case(rest, "alt-") {
                key.alt = true;
                rest = after;
            } else {
                break;
            }
        }
        key.code = parse_code(rest).ok_or_else(error)?;
        Ok(key)
    }

    /// Reads a string of keys: characters stand for themselves, other keys are in angle brackets
    /// (`jj<enter>/web<esc>`, `<ctrl-l>`, `<lt>` for `<`).
    ///
    /// # Errors
    /// If a bracket holds no key, or is not closed.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first == '<' {
                let end = rest.find('>').ok_or_else(|| KeyError(rest.to_owned()))?;
                keys.push(Self::parse(rest.get(1..end).unwrap_or_default())?);
                rest = rest.get(end + 1..).unwrap_or_default();
            } else {
                keys.push(Self::char(first));
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
        Ok(keys)
    }
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| text.get(prefix.len()..))
        .flatten()
        .filter(|rest| !rest.is_empty())
}

fn parse_code(text: &str) -> Option<Code> {
    let mut characters = text.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return (!only.is_control()).then_some(Code::Char(only));
    }
    let lower = text.to_ascii_lowercase();
    if let Some((.., code)) = NAMES.iter().find(|(name, ..)| *name == lower) {
        return Some(*code);
    }
    let number: u8 = lower.strip_prefix('f')?.parse().ok()?;
    (1..=12).contains(&number).then_some(Code::F(number))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        if self.alt {
            f.write_str("Alt-")?;
        }
        if let Some((_, shown, _)) = NAMES.iter().find(|(.., code)| *code == self.code) {
            return f.write_str(shown);
        }
        match self.code {
            Code::Char(character) if self.ctrl => write!(f, "{}", character.to_ascii_uppercase()),
            Code::Char(character) => write!(f, "{character}"),
            Code::F(number) => write!(f, "F{number}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_printed() {
        for (text, printed) in [
            ("K", "K"),
            ("ctrl-l", "Ctrl-L"),
            ("Ctrl-L", "Ctrl-L"),
            ("alt-x", "Alt-x"),
            ("pgup", "PgUp"),
            ("PgDn", "PgDn"),
            ("f1", "F1"),
            ("F12", "F12"),
            ("space", "Space"),
            ("shift-tab", "Shift-Tab"),
            ("-", "-"),
            ("ctrl--", "Ctrl--"),
            ("文", "文"),
        ] {
            assert_eq!(Key::parse(text).map(|key| key.to_string()), Ok(printed.to_owned()), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_key_is_rejected_by_name() {
        for text in ["", "ctrl-", "foo", "f0", "f13", "ctrl-foo", "\u{1b}"] {
            assert_eq!(Key::parse(text), Err(KeyError(text.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_string_of_keys_is_read() {
        let keys = Key::parse_all("jK<enter>/a b<ctrl-l><lt>").unwrap();
        let printed: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(printed, ["j", "K", "Enter", "/", "a", "Space", "b", "Ctrl-L", "<"]);
        assert!(Key::parse_all("a<enter").is_err());
    }

    #[test]
    fn a_printed_key_parses_to_the_same_key() {
        for (name, ..) in NAMES {
            let key = Key::parse(name).unwrap();
            assert_eq!(Key::parse(&key.to_string()), Ok(key), "{name}");
        }
    }
}
