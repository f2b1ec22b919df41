//! The time that sessions waited for locks, by the root blockers.
//!
//! In each poll every waiting session adds the time since the previous poll, split evenly over the roots that it waits
//! behind. This samples the waits, so the sum is right on average, also for waits shorter than the poll interval;
//! [`Sums::standard_error`] is its error. [`Counter`] computes what each poll adds ([`SnapshotBlame`]), and [`Blame`] is the sum of
//! that. So a recorded poll needs no graph to continue the count.

mod by;
mod cause;
mod costs;
mod counter;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::model::wait_graph::WaitGraph;
use crate::model::{Text, Timestamp};
use crate::text::duration;

pub use by::{BlameGrouping, BlamePeriod, BlameRow};
pub use counter::Counter;
pub use table::{BlameTotals, CostTable, KeyCost, MinuteSums};
pub(crate) use table::{EPISODES, KEYS, MINUTES};

impl BlameKey {
    pub fn who(&self) -> &str {
        if self.application.is_empty() { &self.role } else { &self.application }
    }

    /// `billing idle in xact, UPDATE accounts SET …`; the state is omitted for an active session with a statement.
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

rows! {
    as blame_rows;

    #[derive(Copy, Default)]
    pub struct Sums in SumColumns {
        /// The total time, in seconds.
        1 seconds: f64,
        /// The square of the standard error of `seconds`.
        2 variance: f64,
        /// Waits whose start was seen.
        3 waits: u64,
        /// The maximum number of waiters in one poll.
        4 most: u32,
    }

    /// The key of the blame: sessions that have all of it in common are one line. Each part is one printable line, empty if not
    /// known.
    #[derive(Default, Eq, Hash, PartialOrd, Ord)]
    pub struct BlameKey in BlameKeys {
        1 application: Text,
        /// Its role (`usename`), or the owner of a prepared transaction.
        2 role: Text,
        3 database: Text,
        /// Its state: `active`, `idle in xact`, `idle`, `prepared`, `autovacuum`, …
        4 doing: Text,
        /// Its current or last statement, without literals.
        5 statement: Text,
        6 lock: Text,
        /// The origin given in a comment of its statement.
        7 tag: Text,
    }

    /// A statement of a blocker's transaction, or of a waiter in line that holds up others.
    pub struct EpisodeStatement in Rans {
        1 episode: u64,
        2 at: Option<Timestamp>,
        /// One printable line.
        3 statement: Text,
        /// The process id of the waiter in line behind the root; 0 for a statement of the root itself.
        4 in_line: i32,
    }

    /// The start of an episode: see [`Episode`].
    pub struct EpisodeStart in Beguns {
        1 episode: u64,
        /// The process id; 0 if there is none.
        2 pid: i32,
        3 backend_start: Option<Timestamp>,
        4 xact_start: Option<Timestamp>,
        5 who: Text,
        6 lock: Text,
        7 at: Timestamp,
    }

    pub struct EpisodeEnd in Endeds {
        1 episode: u64,
        /// Never [`Ending::GoesOn`].
        2 ending: Ending,
        /// The action on it, in one printable line; usually empty.
        3 note: Text,
    }
}

impl Sums {
    /// The standard error of `seconds`: exceeded in one case of three, and twice its value in one of twenty.
    pub fn standard_error(&self) -> f64 {
        self.variance.max(0.0).sqrt()
    }

    pub fn add(&mut self, more: Self) {
        self.seconds += more.seconds;
        self.variance += more.variance;
        self.waits = self.waits.saturating_add(more.waits);
        self.most = self.most.max(more.most);
    }
}

/// The note of an episode whose session had ended.
pub const GONE: &str = "its session ended";

words! {
    /// A recording stores the index in the list of all endings.
    #[derive(Default)]
    pub enum Ending {
        /// It continues, or did until a few polls ago.
        #[default]
        GoesOn,
        /// Without an action: its transaction ended, or the waits ended.
        Itself,
        Action,
        Deadlock,
    }
}

/// One root on one lock, as long as it blocked others without a gap of more than three polls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Episode {
    pub number: u64,
    /// The process id; 0 for a prepared transaction, and for a cycle.
    pub pid: i32,
    /// When that process started. None if hidden from the role.
    pub backend_start: Option<Timestamp>,
    /// When its transaction began. None for a session-level lock.
    pub xact_start: Option<Timestamp>,
    /// The blocker, in one printable line.
    pub who: Text,
    /// The awaited lock, in one printable line.
    pub lock: Text,
    /// Its keys, the latest last.
    pub keys: Vec<Arc<BlameKey>>,
    /// When it began to block, if known; otherwise when that was first seen.
    pub begin: Timestamp,
    /// The last poll with a waiter.
    pub last: Timestamp,
    pub last_poll: u64,
    pub sums: Sums,
    pub ending: Ending,
    /// The action on it, or what was seen of it at its end, in one printable line; may be empty.
    pub note: Text,
    pub ran: Vec<EpisodeStatement>,
}

impl Episode {
    /// Its duration, in seconds.
    pub fn length(&self) -> f64 {
        (self.last - self.begin).as_seconds_f64().max(0.0)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blame {
    pub polls: u64,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Seconds that were not counted, because polling stopped for longer than twice the usual interval.
    pub missing: f64,
    pub before: WaitsBefore,
    pub last: Arc<SnapshotBlame>,
    pub table: Arc<CostTable>,
}

impl Blame {
    pub fn advance(&mut self, tick: SnapshotBlame, graph: &WaitGraph) {
        if self.since.is_none() {
            self.before = WaitsBefore::of(graph, tick.at);
        }
        self.add(Arc::new(tick));
    }

    pub fn add(&mut self, tick: Arc<SnapshotBlame>) {
        self.polls = self.polls.saturating_add(1);
        self.since.get_or_insert(tick.at);
        self.until = Some(tick.at);
        self.missing += tick.missing;
        if !tick.is_empty() {
            Arc::make_mut(&mut self.table).add(&tick, self.polls);
        }
        self.last = tick;
    }

    pub fn with_statements(
        &self,
        key: impl Fn(&BlameKey) -> BlameKey,
        statement: impl Fn(&Text) -> Text,
    ) -> Self {
        let ran =
            |ran: &EpisodeStatement| EpisodeStatement { statement: statement(&ran.statement), ..ran.clone() };
        let mut last = SnapshotBlame::clone(&self.last);
        for cost in &mut last.costs {
            cost.key = Arc::new(key(&cost.key));
        }
        last.ran = last.ran.iter().map(ran).collect();
        let mut table = CostTable::clone(&self.table);
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

    /// Whether a session waited behind an episode in the last poll.
    pub fn is_ongoing(&self, episode: &Episode) -> bool {
        episode.ending == Ending::GoesOn && episode.last_poll == self.polls
    }

    /// An episode by its number. None if it was dropped.
    pub fn episode(&self, number: u64) -> Option<&Episode> {
        let episodes = &self.table.episodes;
        let at = episodes.binary_search_by_key(&number, |episode| episode.number).ok()?;
        episodes.get(at).map(|episode| &**episode)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotBlame {
    /// When the locks were read, by the server's clock.
    pub at: Timestamp,
    /// Seconds since the previous poll that were not counted.
    pub missing: f64,
    /// All waits together: a wait behind two roots counts once.
    pub total: Sums,
    pub begun: Vec<EpisodeStart>,
    pub costs: Vec<Cost>,
    pub ran: Vec<EpisodeStatement>,
    pub ended: Vec<EpisodeEnd>,
}

impl SnapshotBlame {
    pub fn is_empty(&self) -> bool {
        self.total == Sums::default() && self.costs.is_empty() && self.ran.is_empty() && self.ended.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    pub episode: u64,
    pub key: Arc<BlameKey>,
    pub sums: Sums,
}

/// Sessions that already waited at the first poll. The sums do not include the time before that poll.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WaitsBefore {
    /// The number of sessions; parallel workers count as one with their leader.
    pub sessions: u32,
    /// The longest wait until then, in seconds. None if the server does not report the start.
    pub longest: Option<f64>,
    /// The sum of their known waits until then, in seconds.
    pub seconds: f64,
}

impl WaitsBefore {
    pub fn of(graph: &WaitGraph, at: Timestamp) -> Self {
        let starts = graph.tree.nodes.iter().filter_map(|node| {
            let (queue, place) = node.waits?;
            graph.queues.get(queue)?.waiters.get(place)?.wait_start
        });
        let waited = starts.map(|start| (at - start).as_seconds_f64().max(0.0));
        waited.fold(Self { sessions: graph.waiting, ..Self::default() }, |all, seconds| Self {
            longest: Some(all.longest.map_or(seconds, |longest| longest.max(seconds))),
            seconds: all.seconds + seconds,
            ..all
        })
    }

    /// `12 sessions were already waiting at the first snapshot, the longest for 4m10s; not included in the sum`. None if no
    /// session was.
    pub fn words(&self) -> Option<String> {
        let sessions = match self.sessions {
            0 => return None,
            1 => "1 session".to_owned(),
            many => format!("{many} sessions"),
        };
        Some(match self.longest {
            Some(longest) if self.sessions == 1 => {
                format!(
                    "{sessions} was already waiting at the first snapshot, for {}; not included in the sum",
                    duration(longest)
                )
            }
            Some(longest) => format!(
                "{sessions} were already waiting at the first snapshot, the longest for {}, {} in total; not included in the sum",
                duration(longest),
                duration(self.seconds)
            ),
            None => format!(
                "{sessions} already waiting at the first snapshot, for an unknown time that is not included in the sum"
            ),
        })
    }
}
