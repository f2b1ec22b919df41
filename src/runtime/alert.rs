use std::fmt::Write;

use crate::model::alert::Ways;

/// The bell and a desktop notification: OSC 9 as in iTerm2 ("Proprietary Escape Codes" of its documentation), OSC 777 as in
/// urxvt (its extension "notify"). tmux passes such a sequence on only if it is wrapped and `allow-passthrough` is on
/// ("allow-passthrough" in tmux(1)); otherwise it drops it.
pub(super) fn sequences(ways: Ways, text: &str, in_tmux: bool) -> String {
    let mut out = String::new();
    if ways.bell {
        out.push('\x07');
    }
    let mut told = Vec::new();
    if ways.osc9 {
        // ConEmu would read a leading number as a command.
        told.push(format!("\x1b]9;locktop: {text}\x07"));
    }
    if ways.osc777 {
        // A semicolon would start another field.
        told.push(format!("\x1b]777;notify;locktop;{}\x07", text.replace(';', ",")));
    }
    for sequence in told {
        let _ = if in_tmux {
            write!(out, "\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
        } else {
            write!(out, "{sequence}")
        };
    }
    out
}

/// Sets the window title; the first call saves the old one (XTWINOPS 22 and OSC 2 in xterm's ctlseqs).
pub(super) fn title(text: &str, is_first: bool) -> String {
    let keep = if is_first { "\x1b[22;2t" } else { "" };
    format!("{keep}\x1b]2;{text}\x07")
}

pub(super) const OLD_TITLE: &str = "\x1b[23;2t";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_sequence() {
        let ways = |bell, osc9, osc777| Ways { bell, title: true, osc9, osc777 };
        for (ways, in_tmux, expected) in [
            (ways(true, false, false), false, "\x07"),
            (ways(false, true, false), false, "\x1b]9;locktop: 12; blocks 3\x07"),
            (ways(true, false, true), false, "\x07\x1b]777;notify;locktop;12, blocks 3\x07"),
            (ways(false, true, false), true, "\x1bPtmux;\x1b\x1b]9;locktop: 12; blocks 3\x07\x1b\\"),
        ] {
            assert_eq!(sequences(ways, "12; blocks 3", in_tmux), expected, "{ways:?}");
        }
    }
}
