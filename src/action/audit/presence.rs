//! Detects which processes still run: each holds a lock on its own file, which the system releases when the process
//! ends for any reason. Unlike a process id, a lock cannot be reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use locktop_base::file::How;

use super::line::{Line, Who};
use super::store::Store;
use super::{AuditError, Unfinished, json};
use crate::model::plan::Outcome;

const PREFIX: &str = "run-";

#[derive(Debug)]
pub(super) struct Presence {
    /// The random part of the name of this process's file.
    run: String,
    state: Mutex<PresenceState>,
}

#[derive(Debug, Default)]
struct PresenceState {
    /// Locked from the first action on.
    lock: Option<File>,
    /// Ids of requests without a result.
    open: BTreeSet<String>,
}

impl Presence {
    pub(super) fn new(store: &Store) -> Result<Self, AuditError> {
        let number = getrandom::u64().map_err(|error| {
            AuditError::of::<std::io::Error>(&store.path(PREFIX))(std::io::Error::other(error))
        })?;
        Ok(Self { run: format!("{number:016x}"), state: Mutex::default() })
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    fn file(&self) -> String {
        format!("{PREFIX}{}", self.run)
    }

    pub(super) fn begin(&self, store: &Store, id: String) -> Result<(), AuditError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.lock.is_none() {
            let lock = store.try_lock(&self.file(), How::Write)?;
            state.lock = Some(lock.ok_or_else(|| AuditError::Busy(store.path(&self.file())))?);
            store.sync()?;
        }
        state.open.insert(id);
        Ok(())
    }

    pub(super) fn end(&self, id: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(id);
    }

    /// Removes the file unless a request has no result: the next process that checks settles that request.
    pub(super) fn leave(&mut self, store: &Store) {
        let file = self.file();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.lock.is_some() && state.open.is_empty() {
            // If the file remains, it is found unlocked later and removed then.
            let _ = store.remove(&file);
        }
    }
}

/// Records a result for every open request of processes that have ended.
pub(super) fn settle(store: &Store, own: &Presence, who: &Who) -> Result<Vec<Unfinished>, AuditError> {
    let mut runs: Vec<String> = store.names()?;
    runs.retain(|name| name.strip_prefix(PREFIX).is_some_and(|run| run != own.run));
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    // Processes create and lock their file during a turn, so no process is between the two steps now.
    let turn = store.turn()?;
    let mut gone = Vec::new();
    for name in runs {
        match store.try_lock(&name, How::Existing) {
            Ok(Some(lock)) => gone.push((name, lock)),
            Ok(None) => {}
            Err(AuditError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let open = open_of(&gone.iter().filter_map(|(name, _)| name.strip_prefix(PREFIX)).collect(), store)?;
    let mut unfinished = Vec::with_capacity(open.len());
    for head in open {
        turn.add(&unknown(&head, who))?;
        unfinished.push(Unfinished { at: head.at, verb: head.verb.into(), name: head.name.into() });
    }
    for (name, _lock) in &gone {
        store.remove(name)?;
    }
    Ok(unfinished)
}

fn open_of(runs: &BTreeSet<&str>, store: &Store) -> Result<Vec<Line<'static>>, AuditError> {
    let mut open: BTreeMap<String, Line<'static>> = BTreeMap::new();
    for bytes in store.contents()? {
        // A line that cannot be parsed is not settled.
        let heads = bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line<'static>>(line).ok());
        for head in heads {
            let run = head.id.split_once('-').map_or("", |(run, _)| run);
            match &*head.event {
                "asked" if runs.contains(run) => _ = open.insert(head.id.to_string(), head),
                "result" => _ = open.remove(&*head.id),
                _ => {}
            }
        }
    }
    let mut open: Vec<Line<'static>> = open.into_values().collect();
    open.sort_by_key(|head| head.at);
    Ok(open)
}

fn unknown(head: &Line<'_>, who: &Who) -> String {
    json(&Line {
        fate: Some(Outcome::Uncertain.as_str()),
        detail: Some("the process that requested it ended before the result was known".to_owned()),
        who: Some(who),
        ..Line::new("result", &head.id, &head.verb, &head.name)
    })
}
