//! The sums, with limits: beyond these, the cheapest are merged.

use std::sync::Arc;

use super::{Blame, BlameKey, Cost, Ending, Episode, EpisodeStart, EpisodeStatement, SnapshotBlame, Sums};
use crate::model::Timestamp;
use crate::order::SortExt;

pub(crate) const KEYS: usize = 2_000;

pub(crate) const EPISODES: usize = 10_000;

/// Statements of a transaction that are kept: the first and the last.
pub(super) const STATEMENTS: usize = 12;

pub(crate) const MINUTES: usize = 60;

/// Maximum number of keys of an episode.
const BLAMED: usize = 4;

/// Sums by the minute, so that the last minutes can be reported separately.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MinuteSums {
    /// The sum before the oldest of the minutes.
    pub before: Sums,
    /// Minutes since 1970 with waits, oldest first.
    pub minutes: Vec<(i64, Sums)>,
}

impl MinuteSums {
    fn add(&mut self, minute: i64, sums: Sums) {
        match self.minutes.iter_mut().rev().find(|(known, _)| *known == minute) {
            Some((_, known)) => known.add(sums),
            None => self.minutes.push((minute, sums)),
        }
        while self.minutes.len() > MINUTES {
            let (_, oldest) = self.minutes.remove(0);
            self.before.add(oldest);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.before.add(other.before);
        let (mut own, mut others) = (std::mem::take(&mut self.minutes), other.minutes.clone());
        own.append(&mut others);
        own.order_by_key(|(minute, _)| *minute);
        for (minute, sums) in own {
            self.add(minute, sums);
        }
    }

    pub fn since(&self, minute: Option<i64>) -> Sums {
        let mut sums = if minute.is_none() { self.before } else { Sums::default() };
        for (_, more) in self.minutes.iter().filter(|(at, _)| minute.is_none_or(|from| *at >= from)) {
            sums.add(*more);
        }
        sums
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyCost {
    pub key: Arc<BlameKey>,
    pub trail: MinuteSums,
    pub episodes: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostTable {
    /// All waits together: a wait behind two roots counts once.
    pub total: MinuteSums,
    /// By key, in the order in which they were first seen.
    pub keys: Vec<Arc<KeyCost>>,
    /// The merged keys.
    pub other: MinuteSums,
    pub other_keys: u64,
    /// In the order in which they began.
    pub episodes: Vec<Arc<Episode>>,
    /// The number of dropped episodes, and their total cost in seconds.
    pub forgotten: (u64, f64),
}

pub(super) fn minute(at: Timestamp) -> i64 {
    at.timestamp().div_euclid(60)
}

impl CostTable {
    pub(super) fn add(&mut self, tick: &SnapshotBlame, poll: u64) {
        let minute = minute(tick.at);
        self.total.add(minute, tick.total);
        self.episodes.extend(tick.begun.iter().map(|begun| Arc::new(begin(begun, poll))));
        for cost in &tick.costs {
            self.add_cost(cost, minute, (tick.at, poll));
        }
        for ran in &tick.ran {
            if let Some(episode) = self.episode_mut(ran.episode) {
                push_statement(&mut episode.ran, ran.clone());
            }
        }
        for ended in &tick.ended {
            if let Some(episode) = self.episode_mut(ended.episode) {
                (episode.ending, episode.note) = (ended.ending, ended.note.clone());
            }
        }
        self.make_room();
    }

    fn episode_mut(&mut self, number: u64) -> Option<&mut Episode> {
        let at = self.episodes.binary_search_by_key(&number, |episode| episode.number).ok()?;
        self.episodes.get_mut(at).map(Arc::make_mut)
    }

    fn add_cost(&mut self, cost: &Cost, minute: i64, (at, poll): (Timestamp, u64)) {
        let Cost { episode, key, sums } = cost;
        let mut is_new = false;
        if let Some(episode) = self.episode_mut(*episode) {
            episode.sums.add(*sums);
            if sums.most > 0 {
                (episode.last, episode.last_poll) = (at, poll);
            }
            if !episode.keys.contains(key) {
                is_new = true;
                episode.keys.push(Arc::clone(key));
                if episode.keys.len() > BLAMED {
                    episode.keys.remove(1);
                }
            }
        }
        // The last ones with a cost are usually at the end.
        let place = self.keys.iter().rposition(|known| known.key == *key).unwrap_or(self.keys.len());
        if place == self.keys.len() {
            self.keys.push(Arc::new(KeyCost { key: Arc::clone(key), ..KeyCost::default() }));
        }
        let Some(known) = self.keys.get_mut(place).map(Arc::make_mut) else { return };
        known.trail.add(minute, *sums);
        known.episodes = known.episodes.saturating_add(u64::from(is_new));
    }

    /// Beyond the limits, merges the cheapest tenth. What continues is kept.
    fn make_room(&mut self) {
        drop_cheapest(
            &mut self.keys,
            KEYS,
            |key| Some(key.trail.since(None).seconds),
            |key| {
                self.other_keys = self.other_keys.saturating_add(1);
                self.other.merge(&key.trail);
            },
        );
        let cost = |episode: &Episode| (episode.ending != Ending::GoesOn).then_some(episode.sums.seconds);
        let (number, seconds) = &mut self.forgotten;
        drop_cheapest(&mut self.episodes, EPISODES, cost, |episode| {
            *number = number.saturating_add(1);
            *seconds += episode.sums.seconds;
        });
    }
}

/// Drops a tenth of `most` rows if there are more. A row without a cost stays.
fn drop_cheapest<T>(
    rows: &mut Vec<Arc<T>>,
    most: usize,
    cost: impl Fn(&T) -> Option<f64>,
    mut dropped: impl FnMut(&T),
) {
    if rows.len() <= most {
        return;
    }
    let mut costs: Vec<f64> = rows.iter().filter_map(|row| cost(row)).collect();
    costs.order_by(f64::total_cmp);
    let limit = costs.get(most / 10).copied().unwrap_or(f64::INFINITY);
    let mut room = most / 10;
    rows.retain(|row| {
        let goes = room > 0 && cost(row).is_some_and(|cost| cost <= limit);
        if goes {
            room -= 1;
            dropped(row);
        }
        !goes
    });
}

fn begin(begun: &EpisodeStart, poll: u64) -> Episode {
    Episode {
        number: begun.episode,
        pid: begun.pid,
        backend_start: begun.backend_start,
        xact_start: begun.xact_start,
        who: begun.who.clone(),
        lock: begun.lock.clone(),
        begin: begun.at,
        last: begun.at,
        last_poll: poll,
        ..Episode::default()
    }
}

/// Keeps the first and the last statements: the one that took a lock is often among the first.
fn push_statement(statements: &mut Vec<EpisodeStatement>, ran: EpisodeStatement) {
    if statements.len() >= STATEMENTS {
        statements.remove(STATEMENTS / 2);
    }
    statements.push(ran);
}

/// Adds up consecutive recorded polls. A recorder that was restarted counts from 1 again; the numbers continue here.
#[derive(Debug, Default)]
pub struct BlameTotals {
    blame: Blame,
    /// The first poll of the recorder, the number of polls it has counted, and the last of them.
    last: Option<(Option<Timestamp>, u64, Timestamp)>,
    offset: u64,
    highest: u64,
}

impl BlameTotals {
    pub fn take(&mut self, counted: &Blame) {
        let tick = &counted.last;
        match self.last {
            Some((since, polls, _)) if since == counted.since && polls == counted.polls => return,
            Some((since, polls, _))
                if since == counted.since && polls.checked_add(1) == Some(counted.polls) => {}
            Some((since, ..)) => {
                if since != counted.since {
                    self.offset = self.highest;
                }
                self.take_open(counted);
            }
            None => self.take_open(counted),
        }
        let mut tick = SnapshotBlame::clone(tick);
        if self.offset > 0 {
            self.renumber(&mut tick);
        }
        let highest = self.blame.table.episodes.last().map_or(0, |episode| episode.number);
        let begun = tick.begun.iter().map(|begun| begun.episode).max().unwrap_or_default();
        self.highest = self.highest.max(highest).max(begun);
        self.last = Some((counted.since, counted.polls, tick.at));
        self.blame.add(Arc::new(tick));
    }

    pub fn last(&self) -> &SnapshotBlame {
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
                last_poll: 0,
                ..Episode::clone(episode)
            })
        });
        let new: Vec<_> = new.collect();
        let table = Arc::make_mut(&mut self.blame.table);
        table.episodes.extend(new);
        table.episodes.order_by_key(|episode| episode.number);
    }

    fn renumber(&self, tick: &mut SnapshotBlame) {
        let numbers = tick.begun.iter_mut().map(|row| &mut row.episode);
        let numbers = numbers.chain(tick.costs.iter_mut().map(|row| &mut row.episode));
        let numbers = numbers.chain(tick.ran.iter_mut().map(|row| &mut row.episode));
        for number in numbers.chain(tick.ended.iter_mut().map(|row| &mut row.episode)) {
            *number = number.saturating_add(self.offset);
        }
    }
}
