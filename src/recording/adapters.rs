//! Other job systems. The parts of an adapter's file that its rows are judged by are kept, too, so that a recorded snapshot
//! can be read without the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cell::{column, rows, sorted, stored_as};
use super::columns::{columns, flat_rows, parts, tuples};
use super::strings::{Decoded, Strings};
use crate::model::adapter::{
    Adapter, AdapterLease, AdapterSchedule, AdapterWatch, Depth, Evidence, Installation, InstallationRows,
    Job, JobState, Part, Paused, QueryChoice, Setting, Tried, Worker, evidence_rows, part_rows,
};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Epoch, Section};
use crate::model::source_tables::NameHash;
use crate::model::{Text, Timestamp};

evidence_rows!(columns);

flat_rows! {
    /// Alternatives of the parts.
    Alternatives of Alternative {
        1 part: Text,
        2 number: u32,
        3 cost: Option<f64>,
        4 reason: Option<Text>,
        5 size: Option<f64>,
    }
    /// The times and errors of parts. A part of jobs has its rows here.
    Parts of PartState {
        1 part: Text,
        2 taken_at: Option<Timestamp>,
        3 error: Option<Text>,
        4 is_cut: bool,
        5 jobs: Vec<Job>,
    }
    /// Installations with their rows.
    Installations of Flat {
        1 name: Text,
        2 title: Text,
        3 settings: Vec<Setting>,
        4 evidence: Evidence,
        5 comes_back: Vec<(Text, Text)>,
        6 advise: Vec<(Text, Text)>,
        7 oid: u32,
        8 schema: Text,
        9 prefix: Text,
        10 tables: Vec<(Text, Text)>,
        11 version: Option<Text>,
        12 refused: Option<Text>,
        13 alternatives: Vec<Alternative>,
        14 parts: Vec<PartState>,
        15 workers: Vec<Worker>,
        16 depth: Vec<Depth>,
        17 paused: Vec<Paused>,
        18 leases: Vec<AdapterLease>,
        19 schedules: Vec<AdapterSchedule>,
        20 is_alone: bool,
        21 sessions: Option<u64>,
    }
}

tuples! {
    /// Two words that belong together.
    Pairs of (Text, Text) as (key, value) { 1 key: Text, 2 value: Text, }
    /// Runs whose key was free.
    JobFrees of ((NameHash, Option<Timestamp>), Timestamp) as ((NameHash(id), started_at), since) {
        1 id: u64,
        2 started_at: Option<Timestamp>,
        3 since: Timestamp,
    }
}

fn pairs<'a, K: 'a>(
    all: impl IntoIterator<Item = (K, &'a Text)>,
    key: impl Fn(K) -> &'a str,
) -> Vec<(Text, Text)> {
    all.into_iter().map(|(of, text)| (key(of).into(), Text::clone(text))).collect()
}

pub(super) fn of_installations(all: &[InstallationRows], strings: &mut Strings) -> Installations {
    column(&all.iter().map(flat).collect::<Vec<_>>(), strings)
}

fn part_states(all: &InstallationRows) -> Vec<PartState> {
    let state = |part: &Part| {
        let (taken_at, error, is_cut) = all.read_of(*part);
        let jobs = all.jobs.get(part).map(|read| read.last_rows().to_vec());
        let (part, error) = (part.as_str().into(), error.cloned());
        PartState { part, taken_at, error, is_cut, jobs: jobs.unwrap_or_default() }
    };
    Part::OTHERS.iter().chain(all.jobs.keys()).map(state).collect()
}

fn alternatives(choices: &[QueryChoice]) -> Vec<Alternative> {
    let of = |choice: &QueryChoice, tried: &Tried| Alternative {
        part: choice.part.as_str().into(),
        number: u32::try_from(tried.number).unwrap_or_default(),
        cost: tried.outcome.as_ref().ok().copied(),
        reason: tried.outcome.as_ref().err().cloned(),
        size: tried.size,
    };
    choices.iter().flat_map(|choice| choice.tried.iter().map(move |tried| of(choice, tried))).collect()
}

fn flat(all: &InstallationRows) -> Flat {
    let installation = &*all.installation;
    let adapter = &*installation.adapter;
    Flat {
        name: adapter.name.clone(),
        title: adapter.title.clone(),
        settings: adapter.settings.clone(),
        evidence: adapter.evidence.clone(),
        comes_back: pairs(adapter.comes_back.iter().map(|(of, text)| (of, text)), |of| of.as_str()),
        advise: pairs(adapter.advise.iter().map(|(of, text)| (of, text)), |of| of.as_str()),
        oid: installation.oid,
        schema: installation.schema.clone(),
        prefix: installation.prefix.clone(),
        tables: pairs(&installation.tables, |key: &Text| key),
        version: installation.version.clone(),
        refused: installation.refused.clone(),
        alternatives: alternatives(&installation.choices),
        parts: part_states(all),
        workers: all.workers.last_rows().to_vec(),
        depth: all.depth.last_rows().to_vec(),
        paused: all.paused.last_rows().to_vec(),
        leases: all.leases.last_rows().to_vec(),
        schedules: all.schedules.last_rows().to_vec(),
        is_alone: installation.is_alone,
        sessions: all.sessions,
    }
}

pub(super) fn installations(kept: &Installations, strings: &Decoded) -> Vec<InstallationRows> {
    rows::<Flat>(kept, strings).into_iter().map(unflat).collect()
}

fn choices(alternatives: Vec<Alternative>) -> Vec<QueryChoice> {
    let mut choices: Vec<QueryChoice> = Vec::new();
    for one in alternatives {
        let Ok(part) = one.part.parse() else { continue };
        let tried = Tried {
            number: usize::try_from(one.number).unwrap_or_default(),
            outcome: one.cost.ok_or_else(|| one.reason.unwrap_or_default()),
            size: one.size,
            read: None,
            at: None,
        };
        match choices.last_mut().filter(|choice| choice.part == part) {
            Some(choice) => choice.tried.push(tried),
            None => choices.push(QueryChoice { part, tried: vec![tried] }),
        }
    }
    choices
}

fn unflat(flat: Flat) -> InstallationRows {
    let adapter = Adapter {
        name: flat.name,
        title: flat.title,
        settings: flat.settings,
        evidence: flat.evidence,
        comes_back: flat
            .comes_back
            .into_iter()
            .filter_map(|(of, text)| Some((of.parse().ok()?, text)))
            .collect(),
        advise: flat
            .advise
            .into_iter()
            .filter_map(|(of, text)| Some((JobState::of_adapter(&of)?, text)))
            .collect(),
        ..Adapter::default()
    };
    let installation = Installation {
        adapter: Arc::new(adapter),
        oid: flat.oid,
        schema: flat.schema,
        prefix: flat.prefix,
        tables: flat.tables.into_iter().collect::<BTreeMap<_, _>>(),
        version: flat.version,
        refused: flat.refused,
        choices: choices(flat.alternatives),
        is_alone: flat.is_alone,
        ..Installation::default()
    };
    let mut all =
        InstallationRows { sessions: flat.sessions, ..InstallationRows::new(Arc::new(installation)) };
    for state in flat.parts {
        let Ok(part) = state.part.parse() else { continue };
        let about = (state.taken_at, state.error, state.is_cut);
        match part {
            Part::Workers => all.workers = put(flat.workers.clone(), about),
            Part::Depth => all.depth = put(flat.depth.clone(), about),
            Part::Paused => all.paused = put(flat.paused.clone(), about),
            Part::Leases => all.leases = put(flat.leases.clone(), about),
            Part::Schedules => all.schedules = put(flat.schedules.clone(), about),
            Part::Running | Part::Due | Part::Scheduled | Part::Blocked | Part::Failed => {
                all.jobs.insert(part, put(state.jobs, about));
            }
        }
    }
    all
}

fn put<T>(rows: Vec<T>, (taken_at, error, is_cut): (Option<Timestamp>, Option<Text>, bool)) -> Section<T> {
    Section::restored(Arc::new(rows), taken_at, error).cut(is_cut)
}

parts! {
    JobMarks {
        1 epoch: Epoch,
        2 free: ((NameHash, Option<Timestamp>), Timestamp),
    }
}

pub(super) fn of_marks(watch: &AdapterWatch, strings: &mut Strings) -> JobMarks {
    JobMarks::of((watch.epoch.as_slice(), &sorted(&watch.free)), strings)
}

pub(super) fn marks(kept: &JobMarks, strings: &Decoded) -> AdapterWatch {
    let (mut epoch, free) = kept.rows(strings);
    AdapterWatch { epoch: epoch.pop(), free: free.into_iter().collect(), locks: None }
}

part_rows!(columns);

tuples! {
    /// Whether a key is a pair of numbers, and its 64 bits.
    Keys of (Option<bool>, i64) as (is_pair, bits) { 1 is_pair: Option<bool>, 2 bits: i64, }
}

stored_as! {
    Option<LockKey> as (Option<bool>, i64):
        |key| key.map(key_bits).map_or((None, 0), |(is_pair, bits)| (Some(is_pair), bits)),
        |(is_pair, bits)| Some(key_of(is_pair?, bits));
}

/// Whether it is a pair of numbers, and its 64 bits.
pub(super) fn key_bits(key: LockKey) -> (bool, i64) {
    match key {
        LockKey::Bigint(key) => (false, key),
        LockKey::Pair(high, low) => (true, i64::from(high) << 32 | i64::from(low.cast_unsigned())),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "two halves of 32 bits")]
pub(super) fn key_of(is_pair: bool, bits: i64) -> LockKey {
    if is_pair { LockKey::Pair((bits >> 32) as i32, bits as i32) } else { LockKey::Bigint(bits) }
}
