//! Who cost how much waiting: the time that sessions waited, by those who made them wait.
//!
//! At each look every waiting session adds the time since the look before, split evenly over the roots that it waits behind. Looks do
//! not know of waits, so the sum is right on average, also for waits that are shorter than the time between two looks; how far it
//! may be off is in [`Sums::standard_error`]. [`Counter`] says what each look adds ([`Tick`]), and [`Blame`] is the sum of that. So
//! a look that was kept needs no graph to go on counting.

mod before;
mod by;
mod cause;
mod costs;
mod counter;
mod statements;
mod table;
#[cfg(test)]
mod tests;
mod tick;
mod window;

use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

pub use before::Before;
pub use by::{Group, Row, Span};
pub use counter::Counter;
pub(crate) use table::{EPISODES, KEYS, MINUTES};
pub use table::{KeyCost, Table, Trail};
pub use tick::{Begun, Cost, Ended, Ran, Tick};
pub use window::Window;

use super::wait_graph::WaitGraph;
use super::{Text, Timestamp};

/// What one is blamed by: sessions that have all of it in common are one line. Each is a harmless line, and empty where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// `application_name` of the root; empty where it has none.
    pub application: Text,
    /// Its role (`usename`), or the owner of a prepared transaction.
    pub role: Text,
    /// The database that it is connected to.
    pub database: Text,
    /// What it did: `active`, `idle in xact`, `idle`, `prepared`, `autovacuum`, …
    pub doing: Text,
    /// Its statement without literals, or the last one.
    pub statement: Text,
    /// What others waited for, as the screens call it.
    pub lock: Text,
    /// What a comment in its statement says of where that came from.
    pub tag: Text,
}

impl Key {
    /// Who that is in a word: the application, or else the role.
    pub fn who(&self) -> &str {
        if self.application.is_empty() { &self.role } else { &self.application }
    }

    /// `billing idle in xact, UPDATE accounts SET …`; what is active is told by its statement alone.
    pub fn words(&self) -> String {
        let is_active = &*self.doing == "active" && !self.statement.is_empty();
        let doing = if is_active { "" } else { &*self.doing };
        let mut words = String::from(self.who());
        for (word, before) in [(doing, " "), (&*self.statement, if doing.is_empty() { " " } else { ", " })] {
            if !word.is_empty() {
                words.push_str(if words.is_empty() { "" } else { before });
                words.push_str(word);
            }
        }
        words
    }
}

/// How long others waited, and how many.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// How long all together, in seconds.
    pub seconds: f64,
    /// The square of the standard error of that.
    pub variance: f64,
    /// Waits that were seen to begin.
    pub waits: u64,
    /// The most that waited at one look.
    pub most: u32,
}

impl Sums {
    /// So far the seconds may be off, in one case of three; twice as far in one of twenty.
    pub fn standard_error(&self) -> f64 {
        self.variance.max(0.0).sqrt()
    }

    /// Takes in more: seconds, errors and waits are added up, of the most that waited the larger counts.
    pub fn add(&mut self, more: Self) {
        self.seconds += more.seconds;
        self.variance += more.variance;
        self.waits = self.waits.saturating_add(more.waits);
        self.most = self.most.max(more.most);
    }
}

/// The note of an episode whose session was gone at its end.
pub const GONE: &str = "its session ended";

/// How the blocking of an episode ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Ending {
    /// It goes on, or was there a moment ago.
    #[default]
    GoesOn,
    /// By itself: its transaction ended, or the waits ended.
    Itself,
    /// Somebody ended it, and it is on record.
    Action,
    /// The server broke a deadlock that it was part of.
    Deadlock,
}

impl Ending {
    /// Every ending; a recording has each by its place here.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word in JSON and in reports.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One root on one lock, for as long as it blocked somebody without a gap of more than three looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Episode {
    /// Counts up from episode to episode.
    pub number: u64,
    /// The process; 0 for a prepared transaction, and where sessions wait for each other.
    pub pid: i32,
    /// When that process started; none where the role may not see it.
    pub backend_start: Option<Timestamp>,
    /// When its transaction began; none for a lock that is the session's.
    pub xact_start: Option<Timestamp>,
    /// Who it was, in a harmless line.
    pub who: Text,
    /// What others waited for, in a harmless line.
    pub lock: Text,
    /// By what it was blamed, the last last.
    pub keys: Vec<Arc<Key>>,
    /// When it began to block, as far as that is known.
    pub begin: Timestamp,
    /// The last look at which somebody waited.
    pub last: Timestamp,
    /// The number of that look.
    pub last_look: u64,
    /// How long others waited behind it.
    pub sums: Sums,
    /// How its blocking ended; [`Ending::GoesOn`] until then.
    pub ending: Ending,
    /// What was done to it, or was seen of it at its end, in a harmless line; it may be empty.
    pub note: Text,
    /// The statements that were seen in its transaction, oldest first.
    pub ran: Vec<Ran>,
}

impl Episode {
    /// How long it lasted, in seconds.
    pub fn length(&self) -> f64 {
        (self.last - self.begin).as_seconds_f64().max(0.0)
    }
}

/// What was counted up to a look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blame {
    /// How many looks were counted.
    pub looks: u64,
    /// The first of them; none before it.
    pub since: Option<Timestamp>,
    /// The last of them; none before the first.
    pub until: Option<Timestamp>,
    /// Seconds between looks that were not counted: nobody looked for longer than twice the usual time.
    pub missing: f64,
    /// Who waited already at the first of them.
    pub before: Before,
    /// What the last look added.
    pub last: Arc<Tick>,
    /// What was counted, by key and by episode.
    pub table: Arc<Table>,
}

impl Blame {
    /// Takes in what a look adds, and of the first one who waited already.
    pub fn look(&mut self, tick: Tick, graph: &WaitGraph) {
        if self.since.is_none() {
            self.before = Before::of(graph, tick.at);
        }
        self.add(Arc::new(tick));
    }

    /// Takes in what a look adds.
    pub fn add(&mut self, tick: Arc<Tick>) {
        self.looks = self.looks.saturating_add(1);
        self.since.get_or_insert(tick.at);
        self.until = Some(tick.at);
        self.missing += tick.missing;
        if !tick.is_empty() {
            Arc::make_mut(&mut self.table).add(&tick, self.looks);
        }
        self.last = tick;
    }

    /// The same with other keys, and other words for the statements that were seen.
    pub fn with_statements(&self, key: impl Fn(&Key) -> Key, statement: impl Fn(&Text) -> Text) -> Self {
        let ran = |ran: &Ran| Ran { statement: statement(&ran.statement), ..ran.clone() };
        let mut last = Tick::clone(&self.last);
        for cost in &mut last.costs {
            cost.key = Arc::new(key(&cost.key));
        }
        last.ran = last.ran.iter().map(ran).collect();
        let mut table = Table::clone(&self.table);
        for cost in &mut table.keys {
            let cost = Arc::make_mut(cost);
            cost.key = Arc::new(key(&cost.key));
        }
        for episode in &mut table.episodes {
            let episode = Arc::make_mut(episode);
            episode.keys = episode.keys.iter().map(|of| Arc::new(key(of))).collect();
            episode.ran = episode.ran.iter().map(ran).collect();
        }
        Self { last: Arc::new(last), table: Arc::new(table), ..self.clone() }
    }

    /// Whether somebody waited behind an episode at the last look.
    pub fn goes_on(&self, episode: &Episode) -> bool {
        episode.ending == Ending::GoesOn && episode.last_look == self.looks
    }

    /// An episode by its number; none where it is forgotten.
    pub fn episode(&self, number: u64) -> Option<&Episode> {
        let episodes = &self.table.episodes;
        let at = episodes.binary_search_by_key(&number, |episode| episode.number).ok()?;
        episodes.get(at).map(|episode| &**episode)
    }
}
