//! Text in the encodings that a database may use.
//!
//! A connection that requests no conversion, because one text in another encoding would fail a whole statement, receives
//! text as the stored bytes and decodes it by the encoding of the database that it belongs to.

use std::borrow::Cow;

use encoding_rs as rs;

/// How a database stores its text. The default, for UTF-8 and for `SQL_ASCII`, which declares no encoding, reads UTF-8
/// and replaces invalid bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(Table);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Table {
    #[default]
    Utf8,
    /// Only ASCII is known: each run of other bytes becomes one replacement character.
    Ascii,
    /// A WHATWG encoding, and the characters that PostgreSQL has in place of some of its characters.
    Web(&'static rs::Encoding, &'static [(char, char)]),
    /// The same, if the WHATWG encoding has letters in place of the control characters from 0x80 to 0x9f.
    WithControls(&'static rs::Encoding),
}

/// By PostgreSQL's names ("Character Set Support" in its documentation, and `src/common/encnames.c`); for the WHATWG
/// encodings see <https://encoding.spec.whatwg.org>. `tests/live/encodings.rs` compares each with the server's own
/// conversion.
const NAMES: [(&str, Table); 30] = [
    ("LATIN1", Table::WithControls(rs::WINDOWS_1252)),
    ("LATIN2", Table::Web(rs::ISO_8859_2, &[])),
    ("LATIN3", Table::Web(rs::ISO_8859_3, &[])),
    ("LATIN4", Table::Web(rs::ISO_8859_4, &[])),
    ("LATIN5", Table::WithControls(rs::WINDOWS_1254)),
    ("LATIN6", Table::Web(rs::ISO_8859_10, &[])),
    ("LATIN7", Table::Web(rs::ISO_8859_13, &[])),
    ("LATIN8", Table::Web(rs::ISO_8859_14, &[])),
    ("LATIN9", Table::Web(rs::ISO_8859_15, &[])),
    ("LATIN10", Table::Web(rs::ISO_8859_16, &[])),
    ("ISO_8859_5", Table::Web(rs::ISO_8859_5, &[])),
    ("ISO_8859_6", Table::Web(rs::ISO_8859_6, &[])),
    ("ISO_8859_7", Table::Web(rs::ISO_8859_7, &[])),
    ("ISO_8859_8", Table::Web(rs::ISO_8859_8, &[])),
    ("WIN1250", Table::Web(rs::WINDOWS_1250, &[])),
    ("WIN1251", Table::Web(rs::WINDOWS_1251, &[])),
    ("WIN1252", Table::Web(rs::WINDOWS_1252, &[])),
    ("WIN1253", Table::Web(rs::WINDOWS_1253, &[])),
    ("WIN1254", Table::Web(rs::WINDOWS_1254, &[])),
    ("WIN1255", Table::Web(rs::WINDOWS_1255, &[])),
    ("WIN1256", Table::Web(rs::WINDOWS_1256, &[])),
    ("WIN1257", Table::Web(rs::WINDOWS_1257, &[])),
    ("WIN1258", Table::Web(rs::WINDOWS_1258, &[])),
    ("WIN866", Table::Web(rs::IBM866, &[])),
    ("WIN874", Table::Web(rs::WINDOWS_874, &[])),
    ("KOI8R", Table::Web(rs::KOI8_R, &[])),
    ("KOI8U", Table::Web(rs::KOI8_U, &[('\u{45e}', '\u{255d}'), ('\u{40e}', '\u{256c}')])),
    ("EUC_JP", Table::Web(rs::EUC_JP, &[('\u{a6}', '\u{ffe4}')])),
    ("EUC_KR", Table::Web(rs::EUC_KR, &[])),
    ("EUC_CN", Table::Web(rs::GBK, &[('\u{b7}', '\u{30fb}'), ('\u{2014}', '\u{2015}')])),
];

impl Encoding {
    #[must_use]
    pub fn named(name: &str) -> Self {
        match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, table)) => Self(*table),
            None if ["UTF8", "SQL_ASCII", ""].contains(&name) => Self(Table::Utf8),
            // EUC_TW, EUC_JIS_2004 and MULE_INTERNAL, which WHATWG does not have.
            None => Self(Table::Ascii),
        }
    }

    /// Whether the stored bytes are read as UTF-8.
    #[must_use]
    pub fn is_utf8(self) -> bool {
        self.0 == Table::Utf8
    }

    /// Decodes the bytes; invalid ones become replacement characters.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self.0 {
            Table::Utf8 => String::from_utf8_lossy(bytes),
            Table::Ascii => ascii(bytes),
            Table::Web(web, others) => {
                let (text, _) = web.decode_without_bom_handling(bytes);
                let other = |letter| others.iter().find(|(theirs, _)| *theirs == letter);
                if text.is_ascii() || !text.chars().any(|letter| other(letter).is_some()) {
                    return text;
                }
                text.chars().map(|letter| other(letter).map_or(letter, |(_, ours)| *ours)).collect()
            }
            Table::WithControls(_) if bytes.is_ascii() => String::from_utf8_lossy(bytes),
            Table::WithControls(web) => {
                let letter = |byte: &u8| match byte {
                    0..=0x9f => char::from(*byte),
                    _ => web
                        .decode_without_bom_handling(&[*byte])
                        .0
                        .chars()
                        .next()
                        .unwrap_or(char::REPLACEMENT_CHARACTER),
                };
                bytes.iter().map(letter).collect()
            }
        }
    }

    /// Decodes `bytes`; `None` for NULL.
    #[must_use]
    pub fn text(self, bytes: Option<&[u8]>) -> Option<Cow<'_, str>> {
        bytes.map(|bytes| self.decode(bytes))
    }

    /// Decodes a name from a shared catalog. It is in the encoding of the database in which it was created, which is not
    /// recorded: valid UTF-8 is read as UTF-8, anything else in this encoding.
    #[must_use]
    pub fn shared(self, bytes: &[u8]) -> Cow<'_, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => self.decode(bytes),
        }
    }
}

/// Decodes pairs of hexadecimal digits; `None` if the text is anything else.
#[must_use]
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn ascii(bytes: &[u8]) -> Cow<'_, str> {
    if let (true, Ok(text)) = (bytes.is_ascii(), std::str::from_utf8(bytes)) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii() {
            text.push(char::from(*byte));
        } else if !text.ends_with(char::REPLACEMENT_CHARACTER) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> String {
        Encoding::named(name).decode(bytes).into_owned()
    }

    #[test]
    fn each_database_has_its_own() {
        assert_eq!(read("UTF8", "caf\u{e9}".as_bytes()), "caf\u{e9}");
        assert_eq!(read("LATIN1", b"caf\xe9 \x85"), "caf\u{e9} \u{85}");
        assert_eq!(read("LATIN9", b"\xa4"), "\u{20ac}");
        assert_eq!(read("WIN1252", b"\x80"), "\u{20ac}");
        assert_eq!(read("EUC_JP", b"\xc6\xfc\xcb\xdc"), "\u{65e5}\u{672c}");
        assert_eq!(read("KOI8R", b"\xda"), "\u{437}");
    }

    #[test]
    fn invalid_bytes_are_replaced_and_the_rest_is_kept() {
        assert_eq!(read("SQL_ASCII", b"a\xffb"), "a\u{fffd}b");
        assert_eq!(read("UTF8", b"a\xffb"), "a\u{fffd}b");
        assert_eq!(read("EUC_JP", b"a\xff b"), "a\u{fffd} b");
        assert_eq!(read("EUC_TW", b"a\xc4\xe3\xa4\xa4b\xa4"), "a\u{fffd}b\u{fffd}");
        assert_eq!(read("of the future", b"plain"), "plain");
    }

    #[test]
    fn nothing_is_copied_that_is_plain() {
        for name in ["UTF8", "SQL_ASCII", "LATIN1", "EUC_JP", "EUC_TW", "KOI8U"] {
            assert!(matches!(Encoding::named(name).decode(b"plain"), Cow::Borrowed("plain")), "{name}");
        }
    }

    #[test]
    fn a_shared_name_is_read_as_utf8_if_it_is_valid_utf8() {
        let latin = Encoding::named("LATIN1");
        assert_eq!(latin.shared("caf\u{e9}".as_bytes()), "caf\u{e9}");
        assert_eq!(latin.shared(b"caf\xe9"), "caf\u{e9}");
    }
}
