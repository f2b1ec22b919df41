use std::sync::Arc;

use super::{Blame, Ending, Episode, Sums, Tick};
use crate::model::Timestamp;

/// Adds up consecutive recorded polls. A recorder that was restarted counts from 1 again; the numbers continue here.
#[derive(Debug, Default)]
pub struct Window {
    blame: Blame,
    /// The first poll of the recorder, the number of polls it has counted, and the last of them.
    last: Option<(Option<Timestamp>, u64, Timestamp)>,
    offset: u64,
    highest: u64,
}

impl Window {
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

    pub fn last(&self) -> &Tick {
        &self.blame.last
    }

    pub fn blame(self) -> Blame {
        self.blame
    }

    /// Adds episodes that began before the window, with no cost yet.
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
