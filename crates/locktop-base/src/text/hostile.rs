//! Which characters a screen may be given, and what stands for the others.

/// Zero-width characters that may follow one another. More of them pile up over the lines above and below;
/// no orthography needs as many.
pub(super) const MAX_MARKS: u8 = 6;

/// What becomes of a character of a foreign text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It is shown as it is.
    Keep,
    /// A combining mark or another part of a grapheme without a width of its own.
    Mark,
    /// White space that stays in its line.
    Space,
    /// White space that ends a line.
    Newline,
    /// Its number is shown instead: see [`number`].
    Number,
    /// This one is shown in its place.
    Replace(char),
}

/// Classifies a character.
///
/// - C0 controls and DEL become their pictures (`␛`, U+2400 to U+2421), C1 controls their number.
/// - So does whatever is not visible: joiners, variation selectors, soft hyphens, direction marks and overrides, zero-width spaces, tags
///   and all other characters that Unicode's `DerivedCoreProperties.txt` calls `Default_Ignorable_Code_Point`. They could make one
///   text pass for another, and terminals disagree on the width of what some of them make of their neighbours. For that emoji
///   modifiers are numbers, too.
pub(super) fn class(c: char) -> Class {
    match c {
        ' '..='~' => Class::Keep,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Class::Newline,
        '\t' => Class::Space,
        '\0'..='\u{1f}' => Class::Replace(picture(c)),
        '\u{7f}' => Class::Replace('␡'),
        _ if c.is_control() || is_unseen(c) => Class::Number,
        // Halfwidth sound marks count as no column in a grapheme and take one on a terminal; the standalone
        // marks are the same for a reader, and everybody agrees on their width.
        '\u{ff9e}' => Class::Replace('\u{309b}'),
        '\u{ff9f}' => Class::Replace('\u{309c}'),
        _ if c.is_whitespace() => Class::Space,
        _ if unicode_width::UnicodeWidthChar::width(c) == Some(0) => Class::Mark,
        _ => Class::Keep,
    }
}

/// The picture of a C0 control character, `␛` for ESC.
fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The code point of a character that has no picture, as `<U+200B>`.
pub(super) fn number(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// Whether a character is not visible by itself.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    is_modifier(c) || is_invisible(c)
}

/// Changes how its neighbours look, and with that their width.
fn is_modifier(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}'
        | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
        | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether the character has no shape at all, such as a zero-width space.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
