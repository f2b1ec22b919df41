//! The newest events, in pieces that views share.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Draft, Event};
use crate::model::Timestamp;

/// Events in a piece. Taking some in copies the last piece at most.
const PIECE: usize = 256;

/// Pieces that are kept: about 20,000 events.
const PIECES: usize = 80;

/// No event of anybody has a larger number.
const LARGEST: u64 = u64::MAX / 2;

/// The newest events. A clone shares all of them.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// Full but for the last, oldest first.
    pieces: Vec<Arc<Vec<Event>>>,
    /// Events there were before the first that is kept.
    dropped: u64,
}

impl Events {
    /// How many are kept: of older ones [`Self::dropped`] has the number.
    pub fn len(&self) -> usize {
        let last = self.pieces.last().map_or(0, |piece| piece.len());
        self.pieces.len().saturating_sub(1) * PIECE + last
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many older ones there were.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The event with this number; none that is too old or not there yet.
    pub fn get(&self, number: u64) -> Option<&Event> {
        let place = usize::try_from(number.checked_sub(self.dropped)?).ok()?;
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    /// All of them, oldest first; newest first where it is turned round.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Takes in one that was kept, with its number. Where some before it are missing it is the first.
    pub fn append(&mut self, event: Event) {
        // No log is that long: somebody made the number up, and what comes after it could not be counted.
        if event.number > LARGEST {
            return;
        }
        if event.number != self.dropped + self.len() as u64 {
            *self = Self { pieces: Vec::new(), dropped: event.number };
        }
        self.push(event);
        self.make_room();
    }

    /// The events from one number up to another, as far as they are in one of these logs, which share what they have in common.
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
                // Without it those before are no use either.
                None => part = Self { pieces: Vec::new(), dropped: (place + 1) * size },
            }
        }
        part
    }

    /// Takes in what was seen at one moment, in order. The oldest make room.
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
