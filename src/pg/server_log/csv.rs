//! `csvlog`: records of values, with line ends allowed within quotes.
//!
//! In an intact file no part of a value is taken for a record. After a torn record, as left by a machine crash, reading
//! continues at the next line end.

use std::io::{self, BufRead};

use super::{Entry, Raw, Reading};

/// Bytes of a value that are kept; the rest is skipped.
const KEPT: usize = 64 << 10;

/// Values of a record: 23 before 13, 24 in 13, 26 since 14; later versions append more.
const VALUES: std::ops::RangeInclusive<usize> = 23..=48;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CsvState {
    /// Before the first byte of a value.
    Begin,
    Plain,
    Quoted,
    /// After a quote within quotes: the end of the value, or the first of two quotes.
    Quote,
    /// Not in a record; skips to the next line end.
    Lost,
}

/// The memory of the values is reused.
struct Record {
    values: Vec<Vec<u8>>,
    count: usize,
    place: CsvState,
}

impl Record {
    fn begin(&mut self) {
        (self.count, self.place) = (0, CsvState::Begin);
        self.next();
    }

    fn next(&mut self) {
        // One more than the largest number is enough to detect too many values.
        self.count = (self.count + 1).min(*VALUES.end() + 1);
        match self.values.get_mut(self.count - 1) {
            Some(value) => value.clear(),
            None => self.values.push(Vec::new()),
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(value) = self.values.get_mut(self.count - 1).filter(|value| value.len() < KEPT) {
            value.push(byte);
        }
    }

    /// Whether the byte ends the record.
    fn take(&mut self, byte: u8) -> bool {
        match (self.place, byte) {
            (CsvState::Quoted, b'"') => self.place = CsvState::Quote,
            (CsvState::Quoted, _) => self.push(byte),
            (_, b'\n') => return true,
            (CsvState::Lost, _) | (CsvState::Quote, b'\r') => {}
            (CsvState::Begin, b'"') => self.place = CsvState::Quoted,
            (CsvState::Quote, b'"') => {
                self.push(b'"');
                self.place = CsvState::Quoted;
            }
            (CsvState::Begin | CsvState::Plain | CsvState::Quote, b',') => {
                self.place = CsvState::Begin;
                self.next();
            }
            (CsvState::Begin | CsvState::Plain, other) if other != b'"' => {
                self.place = CsvState::Plain;
                self.push(other);
            }
            _ => self.place = CsvState::Lost,
        }
        false
    }

    fn raw(&self) -> Raw<'_> {
        let text = |at: usize| {
            let value = self.values.get(at).filter(|_| at < self.count);
            String::from_utf8_lossy(value.map_or(&[], Vec::as_slice))
        };
        Raw {
            entry: Entry {
                pid: text(3).parse().unwrap_or_default(),
                user: text(1),
                application: text(22),
                severity: text(11),
                code: text(12),
                message: text(13),
                detail: text(14),
                context: text(18),
                statement: text(19),
                ..Entry::default()
            },
            time: text(0),
            session_id: text(5),
            session_start: text(8),
        }
    }
}

pub(super) fn read(mut input: impl BufRead, reading: &mut Reading<'_>) -> io::Result<()> {
    let mut record = Record { values: Vec::new(), count: 0, place: CsvState::Begin };
    record.begin();
    loop {
        let piece = input.fill_buf()?;
        // A record without an end may still be in writing.
        if piece.is_empty() {
            return Ok(());
        }
        for byte in piece {
            if !record.take(*byte) {
                continue;
            }
            let is_blank = record.count == 1 && record.values.first().is_some_and(Vec::is_empty);
            if record.place != CsvState::Lost && VALUES.contains(&record.count) {
                reading.entry(record.raw());
            } else if !is_blank {
                reading.damaged();
            }
            record.begin();
        }
        let length = piece.len();
        input.consume(length);
    }
}
