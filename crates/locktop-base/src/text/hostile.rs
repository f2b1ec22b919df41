/// How many zero-width characters may follow one another. More would pile up over adjacent lines; no orthography needs as
/// many.
pub(super) const MAX_MARKS: u8 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Keep,
    /// A combining mark or other zero-width part of a grapheme.
    Mark,
    /// White space that does not end a line.
    Space,
    /// White space that ends a line.
    Newline,
    /// Its code point is shown instead: see [`number`].
    Number,
    Replace(char),
}

/// Classifies a character.
///
/// - C0 controls and DEL become their pictures (`␛`, U+2400 to U+2421), C1 controls their code points.
/// - All invisible characters also become their code points: joiners, variation selectors, soft hyphens, direction marks
///   and overrides, zero-width spaces, tags and all other characters that Unicode's `DerivedCoreProperties.txt` lists as
///   `Default_Ignorable_Code_Point`. They could make one text pass for another, and terminals disagree on the width of
///   some sequences that they form. For the latter reason emoji modifiers become code points, too.
pub(super) fn class(c: char) -> Class {
    match c {
        ' '..='~' => Class::Keep,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Class::Newline,
        '\t' => Class::Space,
        '\0'..='\u{1f}' => Class::Replace(picture(c)),
        '\u{7f}' => Class::Replace('␡'),
        _ if c.is_control() || is_unseen(c) => Class::Number,
        // Halfwidth sound marks count as no column in a grapheme but take one on a terminal; the standalone marks read the same,
        // and their width is agreed on.
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

/// Whether a character is invisible on its own.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    is_modifier(c) || is_invisible(c)
}

/// Whether the character changes the appearance of its neighbours, and so their width.
fn is_modifier(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}'
        | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
        | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether the character has no glyph, such as a zero-width space.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
