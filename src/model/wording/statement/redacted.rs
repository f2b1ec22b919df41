//! Statements in printable form, and whether a statement mentions a secret: by its words, since only the server knows what
//! is in its strings.

use std::sync::LazyLock;

use super::scan::{ScanPiece, pieces};

const LEFT_OUT: &str = "?";

/// The pieces of a statement in printable form: `?` for strings and numbers, and comments without their text. If the
/// statement mentions a secret, unquoted words and quoted names given as its value also become `?`.
pub fn redacted_pieces(statement: &str) -> impl Iterator<Item = (ScanPiece, &str)> {
    let mut values = speaks_of_secret(statement).then(SecretValues::default);
    let mut at = 0;
    pieces(statement).map(move |(piece, text)| {
        at += text.len();
        let behind = statement.as_bytes().get(at).copied();
        let hidden = values.as_mut().map_or(Hidden::No, |values| values.next(piece, text, behind));
        let shown = match (hidden, piece) {
            (Hidden::Begin, _) | (Hidden::No, ScanPiece::String | ScanPiece::Number) => LEFT_OUT,
            (Hidden::Within, _) => "",
            (Hidden::No, ScanPiece::LineComment) => "--",
            (Hidden::No, ScanPiece::Comment) => "/**/",
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
struct SecretValues {
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

impl SecretValues {
    /// `behind` is the byte after the piece.
    fn next(&mut self, piece: ScanPiece, text: &str, behind: Option<u8>) -> Hidden {
        if self.at == At::Value {
            if !self.ends_value(piece, text) {
                return Hidden::Within;
            }
            self.at = At::Nowhere;
        }
        match piece {
            ScanPiece::Space | ScanPiece::LineComment | ScanPiece::Comment => return Hidden::No,
            ScanPiece::Sign if text == ";" => {
                *self = Self::default();
                return Hidden::No;
            }
            _ => {}
        }
        let before = std::mem::take(&mut self.at);
        if piece == ScanPiece::Word {
            self.word(text);
        }
        // `password = crypt(…)`, `password = other.password`
        let is_name = piece == ScanPiece::Word && matches!(behind, Some(b'(' | b'.')) && !self.is_setting;
        if self.begins_value(before, piece, text) && !is_name {
            self.at = At::Value;
            return Hidden::Begin;
        }
        self.at = self.behind(before, piece, text);
        // `crypt("x", …)`: a string in the wrong quotes.
        let is_argument = self.open > 0 && piece == ScanPiece::Quoted;
        let is_conninfo =
            piece == ScanPiece::Quoted && text.contains(['=', ' ', '/']) && speaks_of_secret(text);
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

    fn begins_value(&self, before: At, piece: ScanPiece, text: &str) -> bool {
        let is_null = text.eq_ignore_ascii_case("NULL") || text.eq_ignore_ascii_case("DEFAULT");
        match before {
            At::Nowhere | At::Value => false,
            At::Name { is_keyword } => match piece {
                ScanPiece::String | ScanPiece::Number => true,
                ScanPiece::Quoted => is_keyword,
                ScanPiece::Word => {
                    is_keyword && self.is_object && !is_null && !text.eq_ignore_ascii_case("TO")
                }
                ScanPiece::Sign => {
                    is_keyword && self.is_object && !is_operator(text) && !is_punctuation(text)
                }
                _ => false,
            },
            At::Sign => match piece {
                ScanPiece::Parameter => false,
                ScanPiece::Sign => !is_operator(text) && !is_punctuation(text),
                _ => !is_null,
            },
        }
    }

    fn behind(&mut self, before: At, piece: ScanPiece, text: &str) -> At {
        if self.open > 0 || (matches!(before, At::Name { .. }) && text == "(") {
            match text {
                "(" => self.open += 1,
                ")" => self.open -= 1,
                _ => {}
            }
        }
        match (before, piece) {
            (_, ScanPiece::Word | ScanPiece::Quoted) if is_secret_name(text) => {
                At::Name { is_keyword: text.eq_ignore_ascii_case("PASSWORD") }
            }
            (At::Name { .. }, ScanPiece::Word) if self.is_setting && text.eq_ignore_ascii_case("TO") => {
                At::Sign
            }
            // `::` is a cast.
            (At::Sign, ScanPiece::Sign) if text == ":" => At::Nowhere,
            (At::Name { .. } | At::Sign, ScanPiece::Sign) if is_operator(text) => At::Sign,
            _ => At::Nowhere,
        }
    }

    fn ends_value(&self, piece: ScanPiece, text: &str) -> bool {
        let is_end = piece == ScanPiece::Sign && text == ";";
        let is_apart = matches!(piece, ScanPiece::Space | ScanPiece::LineComment | ScanPiece::Comment)
            || (piece == ScanPiece::Sign && matches!(text, "," | ")" | "(" | "."));
        is_end || (is_apart && !self.is_setting)
    }
}

fn is_punctuation(sign: &str) -> bool {
    matches!(sign, "(" | ")" | "," | ".")
}

fn is_operator(sign: &str) -> bool {
    matches!(sign, "=" | ":" | "<" | ">" | "!" | "~")
}

struct SecretSign {
    text: &'static str,
    at: SignPlace,
    /// A word that must also be in the text.
    with: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SignPlace {
    Any,
    /// As a part of a name: `db_pwd`, `userPwd`.
    Part,
    Word,
}

/// Signs that there is a secret, wherever they are in the text. The last one is a name written in Unicode escapes.
const ANYWHERE: &str = r#"
    passw passphrase passcode pgpass secret token crypt credential bearer scram-sha conninfo apikey
    api_key api-key accesskey access_key access-key privatekey private_key signing_key master_key pgp_
    hmac authorization jwt kennwort wachtwoord contrase арол 密码 密碼 u&"
"#;

/// Signs that are parts of a name.
const PARTS: &str = "senha vault pass pw pwd pwhash psw pin otp cred creds digest";

/// Words, and another one that must also be in the text: options of servers and user mappings, programs of COPY, server
/// settings and arguments of prepared statements have no telling names.
const PAIRS: [(&str, &str); 6] = [
    ("program", "copy"),
    ("mapping", "user"),
    ("options", "server"),
    ("options", "foreign"),
    ("subscription", "connection"),
    ("system", "alter"),
];

/// All signs, and a bit set of their first three bytes, in lower case: nothing else is examined in most texts.
static SIGNS: LazyLock<(Vec<SecretSign>, [u64; 64])> = LazyLock::new(|| {
    let of = |texts: &'static str, at| {
        texts.split_ascii_whitespace().map(move |text| SecretSign { text, at, with: None })
    };
    let pairs = PAIRS.map(|(text, with)| SecretSign { text, at: SignPlace::Word, with: Some(with) });
    let single =
        of(ANYWHERE, SignPlace::Any).chain(of(PARTS, SignPlace::Part)).chain(of("execute", SignPlace::Word));
    let signs: Vec<SecretSign> = single.chain(pairs).collect();
    let mut bits = [0; 64];
    // Shorter signs are searched separately.
    for first in signs.iter().filter_map(|sign| sign.text.as_bytes().get(..3)) {
        let bit = bit_of(first.iter().fold(0, |last, byte| window(last, *byte)));
        if let Some(bits) = bits.get_mut(bit / 64) {
            *bits |= 1_u64 << (bit % 64);
        }
    }
    (signs, bits)
});

/// The only sign of two bytes.
const PW: u32 = 0x7077;

/// The last three bytes, ignoring case.
fn window(before: u32, byte: u8) -> u32 {
    ((before << 8) | u32::from(byte | 0x20)) & 0xff_ffff
}

fn bit_of(window: u32) -> usize {
    (window.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

/// Whether `is_it` accepts any of the signs in a text. One pass, at two nanoseconds per byte.
fn any_sign(text: &str, mut is_it: impl FnMut(usize, &SecretSign) -> bool) -> bool {
    let (signs, beginnings) = &*SIGNS;
    let bytes = text.as_bytes();
    let mut last = 0;
    for (at, byte) in bytes.iter().enumerate() {
        last = window(last, *byte);
        let bit = bit_of(last);
        let is_beginning = beginnings.get(bit / 64).is_some_and(|bits| bits >> (bit % 64) & 1 == 1);
        if !is_beginning && last & 0xffff != PW {
            continue;
        }
        let is_found = |(number, sign): (usize, &SecretSign)| {
            let begin = (at + 1).checked_sub(sign.text.len().min(3));
            begin.is_some_and(|begin| sign.is_at(bytes, begin)) && is_it(number, sign)
        };
        if signs.iter().enumerate().any(is_found) {
            return true;
        }
    }
    false
}

pub fn speaks_of_secret(text: &str) -> bool {
    // The second word is searched for only once, however often the first one occurs.
    let mut half = 0_u64;
    let is_whole = any_sign(text, |number, sign| {
        half |= 1 << number;
        sign.with.is_none()
    });
    let other = |(number, sign): (usize, &SecretSign)| {
        half >> number & 1 == 1 && sign.with.is_some_and(|with| has_word(text.as_bytes(), with))
    };
    is_whole || half != 0 && SIGNS.0.iter().enumerate().any(other) || has_userinfo(text)
}

fn is_secret_name(name: &str) -> bool {
    any_sign(name, |_, sign| sign.with.is_none())
}

impl SecretSign {
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let end = at + self.text.len();
        let is = bytes.get(at..end).is_some_and(|part| part.eq_ignore_ascii_case(self.text.as_bytes()));
        is && is_apart(bytes, (at, end), self.at)
    }
}

/// Whether the match is not part of a longer word; `userPwd` has two parts.
fn is_apart(bytes: &[u8], (at, end): (usize, usize), place: SignPlace) -> bool {
    let byte = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or_default();
    let (before, first) = (byte(at.checked_sub(1)), byte(Some(at)));
    let (last, after) = (byte(end.checked_sub(1)), byte(Some(end)));
    let changes = |one: u8, other: u8| one.is_ascii_lowercase() && other.is_ascii_uppercase();
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match place {
        SignPlace::Any => true,
        SignPlace::Part => {
            (!before.is_ascii_alphanumeric() || changes(before, first))
                && (!after.is_ascii_alphabetic() || changes(last, after))
        }
        SignPlace::Word => !is_of_word(before) && !is_of_word(after),
    }
}

fn has_word(bytes: &[u8], word: &str) -> bool {
    let is_it = |(at, part): (usize, &[u8])| {
        part.eq_ignore_ascii_case(word.as_bytes()) && is_apart(bytes, (at, at + word.len()), SignPlace::Word)
    };
    bytes.windows(word.len()).enumerate().any(is_it)
}

/// `scheme://user:password@host`
fn has_userinfo(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, behind)| behind.contains('@'))
}

/// Removes the user info from URLs: `scheme://user:password@host` becomes `scheme://?@host`.
pub fn without_userinfo(said: &str) -> String {
    let mut left = String::with_capacity(said.len());
    let mut rest = said;
    while let Some((before, tail)) = rest.split_once("://") {
        left.push_str(before);
        left.push_str("://");
        let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
        let (url, behind) = tail.split_at(end);
        match url.rsplit_once('@') {
            Some((_, place)) => {
                left.push_str("?@");
                left.push_str(place);
            }
            None => left.push_str(url),
        }
        rest = behind;
    }
    left.push_str(rest);
    left
}
