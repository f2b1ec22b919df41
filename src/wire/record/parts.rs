use std::ops::Range;

/// The parts of a snapshot. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Server = 0,
    Backends = 1,
    Locks = 2,
    Prepared = 3,
    Answers = 4,
    Names = 5,
    Tasks = 6,
    Systems = 7,
    Redis = 8,
    Known = 9,
    Held = 10,
    Marks = 11,
    Waits = 12,
    Series = 13,
    GraphFrom = 14,
    Adapters = 15,
    JobMarks = 16,
}

pub(super) const KINDS: usize = 17;

/// The parts of a snapshot, concatenated: the prefix of the next one's compression.
#[derive(Debug, Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    ends: [usize; KINDS],
}

impl Parts {
    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn get(&self, kind: u32) -> &[u8] {
        self.place(kind).and_then(|place| self.bytes.get(place)).unwrap_or_default()
    }

    pub(super) fn set(&mut self, kind: u32, content: &[u8]) {
        let Some(place) = self.place(kind) else { return };
        let all = self.bytes.len();
        let end = place.start + content.len();
        let behind = all - place.end;
        // Reserves exactly as much as needed: with many locks this is large, and it stays allocated.
        self.bytes.reserve_exact(content.len().saturating_sub(place.len()));
        self.bytes.resize(all.max(end + behind), 0);
        self.bytes.copy_within(place.end..all, end);
        self.bytes.truncate(end + behind);
        if let Some(at) = self.bytes.get_mut(place.start..end) {
            at.copy_from_slice(content);
        }
        for later in self.ends.iter_mut().skip(kind as usize) {
            *later = *later - place.len() + content.len();
        }
    }

    fn place(&self, kind: u32) -> Option<Range<usize>> {
        let kind = usize::try_from(kind).ok()?;
        let start = kind.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        Some(start..*self.ends.get(kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_by_a_longer_and_a_shorter_one_and_the_others_stay() {
        let mut parts = Parts::default();
        let mut wanted: [Vec<u8>; KINDS] = Default::default();
        let script: [(u32, &[u8]); 8] = [
            (2, b"locks"),
            (0, b"server"),
            (16, b"marks"),
            (2, b""),
            (2, b"many locks"),
            (0, b"s"),
            (5, b"names"),
            (99, b"no"),
        ];
        for (kind, content) in script {
            parts.set(kind, content);
            if let Some(part) = wanted.get_mut(kind as usize) {
                *part = content.to_vec();
            }
            assert_eq!(parts.all(), wanted.concat());
            assert!((0u32..).zip(&wanted).all(|(kind, part)| parts.get(kind) == part));
        }
    }
}
