//! What was counted in a part of the looks that were kept.

use std::sync::Arc;

use super::{Blame, Ending, Episode, Sums, Tick};
use crate::model::Timestamp;

/// Adds up the looks of a part, one after the other. Recorders that were started anew count from 1 again, and numbers go on here.
#[derive(Debug, Default)]
pub struct Window {
    blame: Blame,
    /// When who counted had begun, how many looks he had counted, and the last of them.
    last: Option<(Option<Timestamp>, u64, Timestamp)>,
    /// What is added to the numbers of episodes.
    offset: u64,
    /// The highest number of an episode there was.
    highest: u64,
}

impl Window {
    /// Takes a look in, by what was counted up to it.
    pub fn take(&mut self, counted: &Blame) {
        let tick = &counted.last;
        match self.last {
            Some((since, looks, _)) if since == counted.since && looks == counted.looks => return,
            Some((since, looks, _))
                if since == counted.since && looks.checked_add(1) == Some(counted.looks) => {}
            Some((since, ..)) => {
                if since != counted.since {
                    self.offset = self.highest;
                }
                self.take_open(counted);
            }
            None => self.take_open(counted),
        }
        let mut tick = Tick::clone(tick);
        if self.offset > 0 {
            self.renumber(&mut tick);
        }
        let highest = self.blame.table.episodes.last().map_or(0, |episode| episode.number);
        let begun = tick.begun.iter().map(|begun| begun.episode).max().unwrap_or_default();
        self.highest = self.highest.max(highest).max(begun);
        self.last = Some((counted.since, counted.looks, tick.at));
        self.blame.add(Arc::new(tick));
    }

    /// What the last look added, with the numbers that its episodes have here.
    pub fn last(&self) -> &Tick {
        &self.blame.last
    }

    /// What was counted in all looks that were taken in.
    pub fn blame(self) -> Blame {
        self.blame
    }

    /// Episodes that go on from before, which cost nothing yet.
    fn take_open(&mut self, counted: &Blame) {
        let begun = &counted.last.begun;
        let open = counted.table.episodes.iter().filter(|episode| episode.ending == Ending::GoesOn);
        let open = open.filter(|episode| begun.iter().all(|begun| begun.episode != episode.number));
        let (offset, known) = (self.offset, &self.blame);
        let new = open.filter(|episode| known.episode(episode.number.saturating_add(offset)).is_none());
        let new = new.map(|episode| {
            Arc::new(Episode {
                number: episode.number.saturating_add(offset),
                keys: Vec::new(),
                sums: Sums::default(),
                last_look: 0,
                ..Episode::clone(episode)
            })
        });
        let new: Vec<_> = new.collect();
        let table = Arc::make_mut(&mut self.blame.table);
        table.episodes.extend(new);
        table.episodes.sort_by_key(|episode| episode.number);
    }

    fn renumber(&self, tick: &mut Tick) {
        let numbers = tick.begun.iter_mut().map(|row| &mut row.episode);
        let numbers = numbers.chain(tick.costs.iter_mut().map(|row| &mut row.episode));
        let numbers = numbers.chain(tick.ran.iter_mut().map(|row| &mut row.episode));
        for number in numbers.chain(tick.ended.iter_mut().map(|row| &mut row.episode)) {
            *number = number.saturating_add(self.offset);
        }
    }
}
