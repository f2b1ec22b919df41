//! A finding in its row of the first pane, where its age has a separate column.

use super::Finding;
use crate::model::{Text, Timestamp};
use crate::text::{fit, width};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWords {
    text: Text,
    /// The part of `text` that names the locked object; may be empty.
    object: Text,
}

impl RowWords {
    pub(super) fn with(self, more: &str) -> Self {
        Self { text: format!("{}{more}", self.text).into(), ..self }
    }
}

/// Abbreviations of a text that is too long, in this order. The part that names the locked object is removed last.
const STEPS: [&[(&str, &str)]; 3] = [
    &[("advisory lock \"", "\""), ("advisory lock ", "advisory ")],
    &[("idle in transaction", "idle in xact")],
    &[("continues now", "now"), ("continue now", "now")],
];

impl Finding {
    /// Sets the text of the row, in which `object` names the locked object; `began` is the start of the described state.
    pub(super) fn in_row(self, began: Option<Timestamp>, text: impl AsRef<str>, object: &str) -> Self {
        let line = |text: &str| Text::from(crate::text::one_line(text));
        let row = RowWords { text: line(text.as_ref()), object: line(object) };
        Self { row: Some(row), began, ..self }
    }

    /// The text of the row in at most `room` columns: the numbers are cut last.
    pub fn row_text(&self, room: usize) -> String {
        let Some(RowWords { text, object }) = &self.row else {
            let text = if width(&self.summary) <= room { &self.summary } else { &self.short };
            return fit(text, room).into_owned();
        };
        let with = |taken: &[bool]| {
            let mut text = text.to_string();
            if taken.get(STEPS.len()) == Some(&true) && !object.is_empty() {
                let with_blank = format!(" {object}");
                let gone = if text.contains(&with_blank) { &with_blank } else { &**object };
                text = text.replacen(gone, "", 1);
            }
            for (_, pairs) in taken.iter().zip(STEPS).filter(|(taken, _)| **taken) {
                text = pairs.iter().fold(text, |text, (long, short)| text.replace(long, short));
            }
            text
        };
        let fits = |taken: &[bool]| width(&with(taken)) <= room;
        let mut taken = [false; STEPS.len() + 1];
        for step in 0..taken.len() {
            if fits(&taken) {
                break;
            }
            if let Some(taken) = taken.get_mut(step) {
                *taken = true;
            }
        }
        // Undoes abbreviations that a later step has made unnecessary.
        for step in (0..taken.len()).rev() {
            let mut less = taken;
            if let Some(taken) = less.get_mut(step) {
                *taken = false;
            }
            if fits(&less) {
                taken = less;
            }
        }
        shortened(&with(&taken), room)
    }

    pub fn row_since(&self) -> Option<Timestamp> {
        self.began.or(self.since)
    }
}

/// Cuts the text before the numbers.
fn shortened(text: &str, room: usize) -> String {
    let excess = width(text).saturating_sub(room);
    match text.rfind(", blocks ") {
        Some(at) if excess > 0 => {
            let (name, numbers) = text.split_at(at);
            format!("{}{numbers}", fit(name, width(name).saturating_sub(excess)))
        }
        _ => fit(text, room).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Severity, Subject};
    use super::*;

    #[test]
    fn a_row_gives_up_words_before_numbers() {
        let row = |text: &str, object: &str, room: usize| {
            Finding::new("test", Severity::Info, "", Subject::Server)
                .in_row(None, text, object)
                .row_text(room)
        };
        let convoy =
            "2091 ALTER TABLE waits for 2053 for AccessExclusive on orders, blocks 45: 45 continue now";
        let object = " for AccessExclusive on orders";
        assert_eq!(row(convoy, object, 105), convoy);
        assert_eq!(row(convoy, object, 66), "2091 ALTER TABLE waits for 2053, blocks 45: 45 continue now");
        let held = "3042 idle, holds advisory lock \"nightly-export\", blocks 3: 1 continues now, 2 in turn";
        let object = ", holds advisory lock \"nightly-export\"";
        assert_eq!(row(held, object, 66), "3042 idle, holds \"nightly-export\", blocks 3: 1 now, 2 in turn");
        assert_eq!(row(held, object, 40), "3042 idle, blocks 3: 1 now, 2 in turn");
        let idle = "4312 idle in transaction, blocks 17: 1 continues now, 16 in turn";
        assert_eq!(row(idle, "", 66), idle);
        assert_eq!(row(idle, "", 62), "4312 idle in xact, blocks 17: 1 continues now, 16 in turn");
        let long = "prepared transaction xa-4711-a-name-that-does-not-end of xa, blocks 2: 2 continue now";
        assert_eq!(row(long, "", 50), "prepared transaction xa-4711-a-n…, blocks 2: 2 now");
    }
}
