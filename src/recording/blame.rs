//! Costs of waiting by blocker: what each snapshot adds and, with the first snapshot of a group, the totals.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::columns::{codes, columns, flat_rows, parts};
use super::strings::{Decoded, Strings};
use crate::model::blame::{
    Blame, BlameKey, Cost, CostTable, EPISODES, Ending, Episode, EpisodeEnd, EpisodeStart, EpisodeStatement,
    KEYS, KeyCost, MINUTES, MinuteSums, SnapshotBlame, Sums, WaitsBefore, blame_rows,
};
use crate::model::disclosure::{Channel, Mode, kept as left};
use crate::model::{Text, Timestamp};
use crate::order::SortExt;
use crate::text::one_line;

codes! {
    Ending, else Itself; {
        0 GoesOn, 1 Itself, 2 Action, 3 Deadlock,
    }
}

blame_rows!(columns);

flat_rows! {
    /// A minute; none for all before those that are known by themselves.
    BlameMinutes of BlameMinute { 1 minute: Option<i64>, 2 sums: Sums, }
    /// A key by its number.
    KeyCosts of FlatKeyCost { 1 key: u32, 2 minutes: Vec<BlameMinute>, 3 episodes: u64, }
    /// An episode with the numbers of its keys.
    Episodes of FlatEpisode {
        1 number: u64,
        2 pid: i32,
        3 backend_start: Option<Timestamp>,
        4 xact_start: Option<Timestamp>,
        5 who: Text,
        6 lock: Text,
        7 keys: Vec<u32>,
        8 begin: Timestamp,
        9 last: Timestamp,
        10 last_poll: u64,
        11 sums: Sums,
        12 ending: Ending,
        13 note: Text,
        14 ran: Vec<EpisodeStatement>,
    }
    /// The counts, without their tables.
    BlameHeads of #[derive(Default)] BlameHead {
        1 polls: u64,
        2 since: Option<Timestamp>,
        3 until: Option<Timestamp>,
        4 missing: f64,
        5 total: Vec<BlameMinute>,
        6 other: Vec<BlameMinute>,
        7 other_keys: u64,
        8 forgotten: u64,
        9 forgotten_seconds: f64,
        10 before_sessions: u32,
        11 before_longest: Option<f64>,
        12 before_seconds: f64,
    }
    /// A cost with the number of its key.
    Costs of FlatCost { 1 episode: u64, 2 key: u32, 3 sums: Sums, }
    /// The additions of one snapshot, without their tables.
    TickHeads of TickHead { 1 at: Timestamp, 2 missing: f64, 3 total: Sums, }
}

parts! {
    BlameTable {
        1 head: BlameHead,
        2 keys: BlameKey,
        3 costs: FlatKeyCost,
        4 episodes: FlatEpisode,
    }
    BlameTick {
        1 head: TickHead,
        2 keys: BlameKey,
        3 begun: EpisodeStart,
        4 costs: FlatCost,
        5 ran: EpisodeStatement,
        6 ended: EpisodeEnd,
    }
}

#[derive(Default)]
struct Numbers {
    of: BTreeMap<Arc<BlameKey>, u32>,
    keys: Vec<BlameKey>,
}

impl Numbers {
    fn number(&mut self, key: &Arc<BlameKey>) -> u32 {
        if let Some(number) = self.of.get(key) {
            return *number;
        }
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.of.insert(Arc::clone(key), number);
        self.keys.push(BlameKey::clone(key));
        number
    }
}

fn minutes(trail: &MinuteSums) -> Vec<BlameMinute> {
    let before =
        (trail.before != Sums::default()).then_some(BlameMinute { minute: None, sums: trail.before });
    let known = trail.minutes.iter().map(|(minute, sums)| BlameMinute { minute: Some(*minute), sums: *sums });
    before.into_iter().chain(known).collect()
}

fn trail(minutes: &[BlameMinute]) -> MinuteSums {
    let mut trail = MinuteSums::default();
    // Limits the number of minutes, because the file is not trusted.
    for BlameMinute { minute, sums } in minutes.iter().take(MINUTES + 1) {
        match minute {
            None => trail.before = *sums,
            Some(minute) => trail.minutes.push((*minute, *sums)),
        }
    }
    trail
}

pub(super) fn of_table(blame: &Blame, strings: &mut Strings) -> BlameTable {
    let mut numbers = Numbers::default();
    let table = &*blame.table;
    let costs = table.keys.iter().map(|cost| FlatKeyCost {
        key: numbers.number(&cost.key),
        minutes: minutes(&cost.trail),
        episodes: cost.episodes,
    });
    let costs: Vec<_> = costs.collect();
    let episodes = table.episodes.iter().map(|episode| {
        let Episode { number, pid, backend_start, xact_start, begin, last, last_poll, sums, ending, .. } =
            **episode;
        FlatEpisode {
            number,
            pid,
            backend_start,
            xact_start,
            who: Text::clone(&episode.who),
            lock: Text::clone(&episode.lock),
            keys: episode.keys.iter().map(|key| numbers.number(key)).collect(),
            begin,
            last,
            last_poll,
            sums,
            ending,
            note: Text::clone(&episode.note),
            ran: episode.ran.clone(),
        }
    });
    let episodes: Vec<_> = episodes.collect();
    let head = BlameHead {
        polls: blame.polls,
        since: blame.since,
        until: blame.until,
        missing: blame.missing,
        total: minutes(&table.total),
        other: minutes(&table.other),
        other_keys: table.other_keys,
        forgotten: table.forgotten.0,
        forgotten_seconds: table.forgotten.1,
        before_sessions: blame.before.sessions,
        before_longest: blame.before.longest,
        before_seconds: blame.before.seconds,
    };
    BlameTable::of((&[head], &numbers.keys, &costs, &episodes), strings)
}

pub(super) fn table(kept: &BlameTable, strings: &Decoded) -> Blame {
    let (mut head, kept_keys, costs, episodes) = kept.rows(strings);
    let (head, keys) = (head.pop().unwrap_or_default(), keys(kept_keys));
    let key = |number: u32| keys.get(number as usize).cloned();
    let costs = costs.into_iter().filter_map(|cost| {
        let FlatKeyCost { key: number, minutes, episodes } = cost;
        Some(Arc::new(KeyCost { key: key(number)?, trail: trail(&minutes), episodes }))
    });
    let episodes = episodes.into_iter().map(|flat| {
        Arc::new(Episode {
            number: flat.number,
            pid: flat.pid,
            backend_start: flat.backend_start,
            xact_start: flat.xact_start,
            who: harmless(&flat.who),
            lock: harmless(&flat.lock),
            keys: flat.keys.iter().filter_map(|number| key(*number)).collect(),
            begin: flat.begin,
            last: flat.last,
            last_poll: flat.last_poll,
            sums: flat.sums,
            ending: flat.ending,
            note: harmless(&flat.note),
            ran: harmless_ran(flat.ran),
        })
    });
    let mut episodes: Vec<_> = episodes.take(EPISODES).collect();
    episodes.order_by_key(|episode| episode.number);
    let table = CostTable {
        total: trail(&head.total),
        keys: costs.take(KEYS).collect(),
        other: trail(&head.other),
        other_keys: head.other_keys,
        episodes,
        forgotten: (head.forgotten, head.forgotten_seconds),
    };
    Blame {
        polls: head.polls,
        since: head.since,
        until: head.until,
        missing: head.missing,
        before: WaitsBefore {
            sessions: head.before_sessions,
            longest: head.before_longest,
            seconds: head.before_seconds,
        },
        last: Arc::default(),
        table: Arc::new(table),
    }
}

pub(super) fn of_tick(tick: &SnapshotBlame, strings: &mut Strings) -> BlameTick {
    let mut numbers = Numbers::default();
    let costs = tick.costs.iter().map(|cost| FlatCost {
        episode: cost.episode,
        key: numbers.number(&cost.key),
        sums: cost.sums,
    });
    let costs: Vec<_> = costs.collect();
    let head = TickHead { at: tick.at, missing: tick.missing, total: tick.total };
    BlameTick::of((&[head], &numbers.keys, &tick.begun, &costs, &tick.ran, &tick.ended), strings)
}

pub(super) fn tick(kept: &BlameTick, strings: &Decoded) -> Option<SnapshotBlame> {
    let (mut head, kept_keys, begun, costs, ran, ended) = kept.rows(strings);
    let (TickHead { at, missing, total }, keys) = (head.pop()?, keys(kept_keys));
    let costs = costs.into_iter().filter_map(|cost| {
        let FlatCost { episode, key, sums } = cost;
        Some(Cost { episode, key: keys.get(key as usize).cloned()?, sums })
    });
    let begun = begun.into_iter();
    let ended = ended.into_iter();
    Some(SnapshotBlame {
        at,
        missing,
        total,
        begun: begun
            .map(|row| EpisodeStart { who: harmless(&row.who), lock: harmless(&row.lock), ..row })
            .collect(),
        costs: costs.collect(),
        ran: harmless_ran(ran),
        ended: ended.map(|row| EpisodeEnd { note: harmless(&row.note), ..row }).collect(),
    })
}

fn keys(kept: Vec<BlameKey>) -> Vec<Arc<BlameKey>> {
    let keys = kept.into_iter().map(|key| BlameKey {
        application: harmless(&key.application),
        role: harmless(&key.role),
        database: harmless(&key.database),
        doing: harmless(&key.doing),
        statement: harmless(&left(Channel::Recording(Mode::Literals), &key.statement)),
        lock: harmless(&key.lock),
        tag: harmless(&key.tag),
    });
    keys.map(Arc::new).collect()
}

fn harmless_ran(rows: Vec<EpisodeStatement>) -> Vec<EpisodeStatement> {
    rows.into_iter()
        .map(|row| EpisodeStatement { statement: harmless(&left(Channel::Blame, &row.statement)), ..row })
        .collect()
}

fn harmless(text: &Text) -> Text {
    match one_line(text) {
        std::borrow::Cow::Borrowed(same) if same.len() == text.len() => Text::clone(text),
        other => other.into(),
    }
}
