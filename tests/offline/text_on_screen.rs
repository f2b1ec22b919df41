//! The width that `text` computes is the width in the screen buffer and on a terminal.

use locktop::text::{Align, fit_pad, lines, one_line, width};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const ROOM: u16 = 200;

/// The column after `text` in a buffer that is wide enough.
fn drawn(text: &str) -> usize {
    let mut buffer = Buffer::empty(Rect::new(0, 0, ROOM, 1));
    buffer.set_stringn(0, 0, text, usize::from(ROOM), Style::new()).0.into()
}

/// The column after `text` on a terminal, by its own cursor.
fn shown(text: &str) -> usize {
    let mut terminal = vt100::Parser::new(2.try_into().unwrap(), ROOM.try_into().unwrap(), 0);
    terminal.process(text.as_bytes());
    terminal.screen().cursor_position().1.into()
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[ -~]{0,8}",
        "[\\x00-\\x1f\\x7f-\\xa0]{1,3}",
        "[\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{ad}\u{fe0f}]{1,3}",
        "[\u{300}-\u{310}\u{ff9e}\u{ff9f}\u{ff76}\u{1f1e6}-\u{1f1ff}]{1,9}",
        "[\u{4e00}-\u{4e10}\u{ac00}-\u{ac10}\u{644}\u{627}\u{915}\u{94d}\u{937}\u{1100}\u{1161}]{1,4}",
        Just("👨\u{200d}👩\u{1f3fd}\u{200d}👧❤\u{fe0f}".to_owned()),
        Just("\x1b[31m\x1b]0;title\x07\u{9b}2J\r\n\t\x1b[10D".to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_field_fills_its_columns_of_the_buffer(text in hostile(), n in 0_usize..40) {
        let line = one_line(&text);
        for align in [Align::Left, Align::Right] {
            let field = fit_pad(&line, n, align);
            prop_assert_eq!(drawn(&field), n, "{:?}", field);
        }
        for line in lines(&text, n) {
            prop_assert_eq!(drawn(&line), width(&line), "{:?}", line);
        }
    }

    #[test]
    fn common_scripts_take_the_same_columns_on_a_terminal(
        text in "[ -~é-ÿа-я一-丏가-각ぁ-んァ-ヶ😀-😏\\x00-\\x1f\u{7f}-\u{9f}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{fe0f}\u{301}]{0,20}"
    ) {
        let line = one_line(&text);
        prop_assert_eq!(shown(&line), width(&line), "{:?}", line);
    }
}
