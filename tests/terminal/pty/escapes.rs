//! Escape sequences: those that a keyboard sends, and those that the program may write.

use locktop::keys::{Code, Key};

/// The bytes that a terminal sends for a key. Escape is sent as in the kitty keyboard protocol: otherwise a
/// key that follows the lone byte too early would be read as the same key with Alt.
pub(crate) fn of(key: Key) -> Vec<u8> {
    let plain: Vec<u8> = match key.code {
        Code::Char(character) if key.ctrl => vec![(character.to_ascii_lowercase() as u8) & 0x1f],
        Code::Char(character) => character.to_string().into_bytes(),
        Code::Enter => b"\r".into(),
        Code::Esc => b"\x1b[27u".into(),
        Code::Backspace => b"\x7f".into(),
        Code::Tab => b"\t".into(),
        Code::BackTab => b"\x1b[Z".into(),
        Code::Delete => b"\x1b[3~".into(),
        Code::Up => b"\x1b[A".into(),
        Code::Down => b"\x1b[B".into(),
        Code::Right => b"\x1b[C".into(),
        Code::Left => b"\x1b[D".into(),
        Code::Home => b"\x1b[H".into(),
        Code::End => b"\x1b[F".into(),
        Code::PageUp => b"\x1b[5~".into(),
        Code::PageDown => b"\x1b[6~".into(),
        Code::F(number @ 1..=4) => vec![0x1b, b'O', b'P' + number - 1],
        Code::F(number) => panic!("F{number} is not needed here"),
    };
    if key.alt { [b"\x1b", plain.as_slice()].concat() } else { plain }
}

/// A piece of the program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Characters.
    Text(String),
    /// `ESC [` with its parameters and its final byte.
    Csi(String, char),
    /// Anything else: a control character, or the first bytes of another escape sequence.
    Other(String),
}

/// Splits the program's output into parts.
pub(crate) fn pieces(raw: &[u8]) -> Vec<Piece> {
    let text = std::str::from_utf8(raw).expect("the output is UTF-8");
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(csi) = rest.strip_prefix("\x1b[") {
            let end = csi.find(|c: char| ('\x40'..='\x7e').contains(&c)).expect("a sequence ends");
            let last = csi[end..].chars().next().unwrap();
            pieces.push(Piece::Csi(csi[..end].to_owned(), last));
            rest = &csi[end + 1..];
        } else if first.is_control() {
            let end = rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at);
            pieces.push(Piece::Other(rest[..end].to_owned()));
            rest = &rest[first.len_utf8()..];
        } else {
            let end = rest.find(char::is_control).unwrap_or(rest.len());
            pieces.push(Piece::Text(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    pieces
}

/// The parameters of all colours and attributes (SGR) in the output, each colour as one: `38;5;203`, `1`.
pub(crate) fn attributes(raw: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for piece in pieces(raw) {
        let Piece::Csi(parameters, 'm') = piece else { continue };
        let mut numbers = parameters.split(';');
        while let Some(number) = numbers.next() {
            let more = match (number, numbers.clone().next()) {
                ("38" | "48" | "58", Some("5")) => 2,
                ("38" | "48" | "58", Some("2")) => 4,
                _ => 0,
            };
            let all: Vec<_> = std::iter::once(number).chain(numbers.by_ref().take(more)).collect();
            found.push(all.join(";"));
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn output_is_taken_to_pieces() {
    let raw = b"a\x1b[38;5;203;1mb\x1b[0m\x1b]2;x\x07";
    assert_eq!(attributes(raw), ["0", "1", "38;5;203"]);
    let pieces = pieces(raw);
    assert_eq!(pieces[0], Piece::Text("a".to_owned()));
    assert_eq!(pieces[1], Piece::Csi("38;5;203;1".to_owned(), 'm'));
    assert_eq!(pieces[4], Piece::Other("\x1b]2".to_owned()));
}
