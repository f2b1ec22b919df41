use super::scan::{Piece, pieces};
use super::secrets::{is_secret_name, speaks_of_secret};

const LEFT_OUT: &str = "?";

/// The pieces of a statement in printable form: `?` for strings and numbers, and comments without their text. If the
/// statement mentions a secret, unquoted words and quoted names given as its value also become `?`.
pub fn redacted_pieces(statement: &str) -> impl Iterator<Item = (Piece, &str)> {
    let mut values = speaks_of_secret(statement).then(Values::default);
    let mut at = 0;
    pieces(statement).map(move |(piece, text)| {
        at += text.len();
        let behind = statement.as_bytes().get(at).copied();
        let hidden = values.as_mut().map_or(Hidden::No, |values| values.next(piece, text, behind));
        let shown = match (hidden, piece) {
            (Hidden::Begin, _) | (Hidden::No, Piece::String | Piece::Number) => LEFT_OUT,
            (Hidden::Within, _) => "",
            (Hidden::No, Piece::LineComment) => "--",
            (Hidden::No, Piece::Comment) => "/**/",
            (Hidden::No, _) => text,
        };
        (piece, shown)
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    No,
    Begin,
    Within,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    Nowhere,
    /// After the name of a secret; the flag is true for the key word PASSWORD.
    Name {
        is_keyword: bool,
    },
    Sign,
    Value,
}

/// Finds values of secrets that are unquoted or quoted as names: `PASSWORD "x"`, `SET app.password = x`, and mistakes,
/// which the server rejects but still shows to others.
#[derive(Debug, Default)]
struct Values {
    at: At,
    words: usize,
    is_alter: bool,
    /// SET, or ALTER … SET: a value extends to the end of the statement.
    is_setting: bool,
    /// The statement is about a role, a server or another object with its own password.
    is_object: bool,
    /// Open parentheses in the arguments of a function that takes a secret.
    open: usize,
}

const OBJECTS: [&str; 8] =
    ["ROLE", "USER", "GROUP", "SERVER", "SUBSCRIPTION", "FOREIGN", "SYSTEM", "DATABASE"];

impl Values {
    /// `behind` is the byte after the piece.
    fn next(&mut self, piece: Piece, text: &str, behind: Option<u8>) -> Hidden {
        if self.at == At::Value {
            if !self.ends_value(piece, text) {
                return Hidden::Within;
            }
            self.at = At::Nowhere;
        }
        match piece {
            Piece::Space | Piece::LineComment | Piece::Comment => return Hidden::No,
            Piece::Sign if text == ";" => {
                *self = Self::default();
                return Hidden::No;
            }
            _ => {}
        }
        let before = std::mem::take(&mut self.at);
        if piece == Piece::Word {
            self.word(text);
        }
        // `password = crypt(…)`, `password = other.password`
        let is_name = piece == Piece::Word && matches!(behind, Some(b'(' | b'.')) && !self.is_setting;
        if self.begins_value(before, piece, text) && !is_name {
            self.at = At::Value;
            return Hidden::Begin;
        }
        self.at = self.behind(before, piece, text);
        // `crypt("x", …)`: a string in the wrong quotes.
        let is_argument = self.open > 0 && piece == Piece::Quoted;
        let is_conninfo = piece == Piece::Quoted && text.contains(['=', ' ', '/']) && speaks_of_secret(text);
        if is_argument || is_conninfo { Hidden::Begin } else { Hidden::No }
    }

    fn word(&mut self, text: &str) {
        let is_any = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match self.words {
            0 => self.is_alter = is_any(&["ALTER"]),
            1 => self.is_object = is_any(&OBJECTS),
            _ => {}
        }
        self.is_setting |= (self.words == 0 || self.is_alter) && is_any(&["SET"]);
        self.words += 1;
    }

    fn begins_value(&self, before: At, piece: Piece, text: &str) -> bool {
        let is_null = text.eq_ignore_ascii_case("NULL") || text.eq_ignore_ascii_case("DEFAULT");
        match before {
            At::Nowhere | At::Value => false,
            At::Name { is_keyword } => match piece {
                Piece::String | Piece::Number => true,
                Piece::Quoted => is_keyword,
                Piece::Word => is_keyword && self.is_object && !is_null && !text.eq_ignore_ascii_case("TO"),
                Piece::Sign => is_keyword && self.is_object && !is_operator(text) && !is_punctuation(text),
                _ => false,
            },
            At::Sign => match piece {
                Piece::Parameter => false,
                Piece::Sign => !is_operator(text) && !is_punctuation(text),
                _ => !is_null,
            },
        }
    }

    fn behind(&mut self, before: At, piece: Piece, text: &str) -> At {
        if self.open > 0 || (matches!(before, At::Name { .. }) && text == "(") {
            match text {
                "(" => self.open += 1,
                ")" => self.open -= 1,
                _ => {}
            }
        }
        match (before, piece) {
            (_, Piece::Word | Piece::Quoted) if is_secret_name(text) => {
                At::Name { is_keyword: text.eq_ignore_ascii_case("PASSWORD") }
            }
            (At::Name { .. }, Piece::Word) if self.is_setting && text.eq_ignore_ascii_case("TO") => At::Sign,
            // `::` is a cast.
            (At::Sign, Piece::Sign) if text == ":" => At::Nowhere,
            (At::Name { .. } | At::Sign, Piece::Sign) if is_operator(text) => At::Sign,
            _ => At::Nowhere,
        }
    }

    fn ends_value(&self, piece: Piece, text: &str) -> bool {
        let is_end = piece == Piece::Sign && text == ";";
        let is_apart = matches!(piece, Piece::Space | Piece::LineComment | Piece::Comment)
            || (piece == Piece::Sign && matches!(text, "," | ")" | "(" | "."));
        is_end || (is_apart && !self.is_setting)
    }
}

fn is_punctuation(sign: &str) -> bool {
    matches!(sign, "(" | ")" | "," | ".")
}

fn is_operator(sign: &str) -> bool {
    matches!(sign, "=" | ":" | "<" | ">" | "!" | "~")
}
