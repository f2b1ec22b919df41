use std::collections::VecDeque;
use std::sync::Arc;

use super::{Draft, Event};
use crate::model::Timestamp;

/// Events in a chunk. Adding events copies at most the last chunk.
const PIECE: usize = 256;

/// Chunks kept: about 20,000 events.
const PIECES: usize = 80;

const LARGEST: u64 = u64::MAX / 2;

/// The newest events. A clone shares all chunks.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// All full except the last, oldest first.
    pieces: Vec<Arc<Vec<Event>>>,
    dropped: u64,
}

impl Events {
    pub fn len(&self) -> usize {
        let last = self.pieces.last().map_or(0, |piece| piece.len());
        self.pieces.len().saturating_sub(1) * PIECE + last
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn get(&self, number: u64) -> Option<&Event> {
        let place = usize::try_from(number.checked_sub(self.dropped)?).ok()?;
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Adds a recorded event, with its number. If events before it are missing, it becomes the first one.
    pub fn append(&mut self, event: Event) {
        // No log is that long: the number is invalid, and numbers after it would overflow.
        if event.number > LARGEST {
            return;
        }
        if event.number != self.dropped + self.len() as u64 {
            *self = Self { pieces: Vec::new(), dropped: event.number };
        }
        self.push(event);
        self.make_room();
    }

    /// The events `from..end`, as far as one of these logs has them. Logs share their common chunks.
    pub fn part(logs: &VecDeque<Arc<Self>>, from: u64, end: u64) -> Self {
        let size = PIECE as u64;
        let mut part = Self { pieces: Vec::new(), dropped: from };
        for place in from / size..end.div_ceil(size) {
            let wanted = usize::try_from(end - place * size).unwrap_or(usize::MAX).min(PIECE);
            let mut pieces = logs.iter().filter_map(|log| {
                let at = usize::try_from(place.checked_sub(log.dropped / size)?).ok()?;
                log.pieces.get(at).filter(|piece| piece.len() >= wanted)
            });
            match pieces.next() {
                Some(piece) if piece.len() == wanted => part.pieces.push(Arc::clone(piece)),
                Some(piece) => part.pieces.push(Arc::new(piece.get(..wanted).unwrap_or_default().to_vec())),
                // Without it the earlier ones are useless too.
                None => part = Self { pieces: Vec::new(), dropped: (place + 1) * size },
            }
        }
        part
    }

    pub fn extend(&mut self, seen: Timestamp, drafts: impl IntoIterator<Item = Draft>) {
        let first = self.dropped + self.len() as u64;
        for (number, draft) in (first..).zip(drafts) {
            self.push(Event { number, seen, draft });
        }
        self.make_room();
    }

    fn push(&mut self, event: Event) {
        if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE) {
            self.pieces.push(Arc::new(Vec::with_capacity(PIECE)));
        }
        if let Some(last) = self.pieces.last_mut() {
            Arc::make_mut(last).push(event);
        }
    }

    fn make_room(&mut self) {
        let most = self.pieces.len().saturating_sub(PIECES);
        self.dropped += (most * PIECE) as u64;
        self.pieces.drain(..most);
    }
}
