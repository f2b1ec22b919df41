use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::table::minute;
use super::{Blame, BlameKey, Episode, Sums};
use crate::model::{Text, Timestamp};
use crate::order::SortExt;
use rustc_hash::{FxHashMap, FxHasher};

words! {
    #[derive(Default, strum::EnumString)]
    pub enum BlameGrouping {
        #[default]
        Root,
        Application,
        Role,
        Database,
        Statement,
        Lock,
        /// By the comment in the statement.
        #[strum(serialize = "query tag")]
        Tag,
    }
}

impl BlameGrouping {
    fn part(self, key: &BlameKey) -> &Text {
        match self {
            Self::Root | Self::Application => &key.application,
            Self::Role => &key.role,
            Self::Database => &key.database,
            Self::Statement => &key.statement,
            Self::Lock => &key.lock,
            Self::Tag => &key.tag,
        }
    }

    fn name(self, key: &BlameKey) -> String {
        if self == Self::Root {
            return key.words();
        }
        match &**self.part(key) {
            "" => format!("no {}", self.as_str()),
            name => name.to_owned(),
        }
    }

    fn id(self, key: &BlameKey) -> u64 {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        match self {
            Self::Root => key.hash(&mut hasher),
            _ => self.part(key).hash(&mut hasher),
        }
        hasher.finish()
    }
}

words! {
    /// The period up to the last poll in which waits count.
    #[derive(Default)]
    pub enum BlamePeriod {
        #[strum(serialize = "5m")]
        Five,
        #[default]
        #[strum(serialize = "15m")]
        Quarter,
        /// The last hour, as long as minutes are kept.
        #[strum(serialize = "1h")]
        Hour,
        /// Since the first poll.
        All,
    }
}

impl BlamePeriod {
    pub const fn minutes(self) -> Option<i64> {
        match self {
            Self::Five => Some(5),
            Self::Quarter => Some(15),
            Self::Hour => Some(60),
            Self::All => None,
        }
    }

    /// The first minute that counts. None: all do. Minutes count as a whole, and the last one is the current minute.
    pub fn first_minute(self, blame: &Blame) -> Option<i64> {
        let first = minute(blame.until?) - self.minutes()? + 1;
        (first > minute(blame.since?)).then_some(first)
    }

    pub fn begin(self, blame: &Blame) -> Option<Timestamp> {
        let first = self.first_minute(blame).and_then(|minute| Timestamp::from_timestamp(minute * 60, 0));
        first.or(blame.since)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlameRow {
    pub id: u64,
    pub name: String,
    /// The lock with the most waiting time, in one printable line.
    pub on: Text,
    /// The number of further locks.
    pub more: usize,
    pub sums: Sums,
    /// Episodes seen in the period; not counted for the remaining roots taken together.
    pub episodes: u64,
    /// Their keys; empty for the remaining roots taken together.
    pub keys: Vec<Arc<BlameKey>>,
    cost_of_on: f64,
}

impl BlameRow {
    pub fn has(&self, episode: &Episode) -> bool {
        episode.keys.iter().any(|key| self.keys.contains(key))
    }
}

impl Blame {
    pub fn total(&self, span: BlamePeriod) -> Sums {
        self.table.total.since(span.first_minute(self))
    }

    /// Roots by group, the most expensive first; the remaining ones taken together are last.
    pub fn by(&self, group: BlameGrouping, span: BlamePeriod) -> Vec<BlameRow> {
        let from = span.first_minute(self);
        let mut rows: Vec<BlameRow> = Vec::new();
        let mut places: FxHashMap<u64, usize> = FxHashMap::default();
        let mut row_of: FxHashMap<&Arc<BlameKey>, usize> = FxHashMap::default();
        for cost in &self.table.keys {
            let sums = cost.trail.since(from);
            if sums == Sums::default() {
                continue;
            }
            let id = group.id(&cost.key);
            let place = *places.entry(id).or_insert(rows.len());
            if place >= rows.len() {
                rows.push(BlameRow { id, name: group.name(&cost.key), ..BlameRow::default() });
            }
            let Some(row) = rows.get_mut(place) else { continue };
            let is_other = row.keys.iter().all(|key| key.lock != cost.key.lock);
            row.more += usize::from(is_other && !row.keys.is_empty());
            if row.keys.is_empty() || sums.seconds > row.cost_of_on {
                (row.on, row.cost_of_on) = (Text::clone(&cost.key.lock), sums.seconds);
            }
            row.sums.add(sums);
            row.keys.push(Arc::clone(&cost.key));
            row_of.insert(&cost.key, place);
        }
        self.count_episodes(span, &row_of, &mut rows);
        rows.order_by(|a, b| b.sums.seconds.total_cmp(&a.sums.seconds).then_with(|| a.name.cmp(&b.name)));
        let other = self.table.other.since(from);
        if other != Sums::default() {
            let name = format!("{} others, each with less waiting time", self.table.other_keys);
            rows.push(BlameRow { sums: other, name, ..BlameRow::default() });
        }
        rows
    }

    fn count_episodes(
        &self,
        span: BlamePeriod,
        row_of: &FxHashMap<&Arc<BlameKey>, usize>,
        rows: &mut [BlameRow],
    ) {
        for episode in self.episodes_in(span) {
            let mut counted: Vec<usize> = Vec::new();
            for place in episode.keys.iter().filter_map(|key| row_of.get(key)) {
                if !counted.contains(place)
                    && let Some(row) = rows.get_mut(*place)
                {
                    counted.push(*place);
                    row.episodes += 1;
                }
            }
        }
    }

    pub fn episodes_in(&self, span: BlamePeriod) -> impl Iterator<Item = &Episode> {
        let from = span.first_minute(self);
        let episodes = self.table.episodes.iter().map(|episode| &**episode);
        episodes.filter(move |episode| from.is_none_or(|from| minute(episode.last) >= from))
    }
}
