use rustc_hash::FxHashSet;

use super::work::SelectedSession;
use super::{caution, work};
use crate::model::consequence::has_query;
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::plan::{Ask, PlanIndex, Refused, TargetScope, Verb};
use crate::model::row_id::{LockOwner, RowId};
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;
use crate::order::SortExt;

#[derive(Debug, Default)]
pub(super) struct SessionSelection {
    pub(super) picks: Vec<SelectedSession>,
    pub(super) refused: Vec<Refused>,
    /// Number left out because the filter hides them.
    pub(super) hidden: usize,
}

impl SessionSelection {
    fn take(&mut self, found: Result<SelectedSession, Refused>) {
        match found {
            Ok(pick) => self.picks.push(pick),
            Err(refused) => self.refused.push(refused),
        }
    }
}

pub(super) fn meant(index: &PlanIndex<'_>, ask: &Ask) -> SessionSelection {
    let mut meant = SessionSelection::default();
    for chosen in &ask.chosen {
        match ask.scope {
            TargetScope::This => this(index, ask, *chosen, &mut meant),
            TargetScope::Root | TargetScope::Blockers => also_meant(index, ask, *chosen, &mut meant),
        }
    }
    for pick in &mut meant.picks {
        lead(index, pick);
    }
    let mut seen = FxHashSet::default();
    meant.picks.retain(|pick| seen.insert(pick.pid));
    let mut told = FxHashSet::default();
    meant.refused.retain(|refused| told.insert((refused.subject, refused.name.clone())));
    if ask.is_of_chains() {
        let place =
            |pick: &SelectedSession| index.node(Party::Backend(pick.pid)).map_or(usize::MAX, |(at, _)| at);
        meant.picks.order_by_key(place);
    }
    meant
}

/// A parallel worker has no session of its own: its leader is used instead.
fn lead(index: &PlanIndex<'_>, pick: &mut SelectedSession) {
    let Some(backend) = index.backend(pick.pid) else { return };
    if backend.group() != pick.pid && pick.start.is_none_or(|start| backend.backend_start == Some(start)) {
        let via = Some(pick.pid);
        *pick = SelectedSession {
            via,
            holds: pick.holds,
            lease: pick.lease.take(),
            ..SelectedSession::new(backend.group(), None)
        };
    }
}

fn this(index: &PlanIndex<'_>, ask: &Ask, chosen: RowId, meant: &mut SessionSelection) {
    match chosen {
        RowId::Backend(id) => meant.picks.push(SelectedSession::new(id.pid, id.backend_start)),
        RowId::Lock(tag, LockOwner::Backend(id), mode) => {
            meant.picks.push(SelectedSession {
                holds: Some((tag, mode)),
                ..SelectedSession::new(id.pid, id.backend_start)
            });
        }
        RowId::Group(parent, tag, mode) => {
            let members = members(index, parent, tag, mode);
            if members.is_empty() {
                let reason = "nobody waits like this any more";
                meant.refused.push(Refused::new("the queue", Subject::Party(parent), reason));
            }
            let all = members.len();
            let shown = members.into_iter().filter(|pid| ask.shows(Party::Backend(*pid)));
            let before = meant.picks.len();
            meant.picks.extend(shown.map(|pid| SelectedSession::new(pid, None)));
            meant.hidden += all - (meant.picks.len() - before);
        }
        RowId::Prepared(xact) => meant.refused.push(prepared(index, xact)),
        RowId::Awaited(tag) => meant.refused.push(several(index, tag)),
        RowId::Task(task, again) => meant.take(key_holder(index, task, again)),
        RowId::Item(item) => meant.take(work::session_of_item(index, item)),
        RowId::Lease(lease) => meant.take(work::session_of_lease(index, lease)),
        _ => {
            meant.refused.push(Refused::new("this row", Subject::Server, "is not a session"));
        }
    }
}

/// The waiters folded into one line: those under `parent` that block no session.
fn members(index: &PlanIndex<'_>, parent: Party, tag: LockTag, mode: LockMode) -> Vec<i32> {
    let tree = &index.graph.tree;
    let Some((_, node)) = index.node(parent) else { return Vec::new() };
    let alike = |at: &usize| {
        let node = tree.nodes.get(*at)?;
        let queue = index.graph.queues.get(node.waits?.0)?;
        let waiter = queue.waiters.get(node.waits?.1)?;
        let is_alike = node.children.is_empty() && node.cycle.is_none();
        (is_alike && queue.tag == tag && waiter.mode == mode).then_some(node.party)
    };
    let pid = |party: Party| match party {
        Party::Backend(pid) => Some(pid),
        Party::Prepared(_) => None,
    };
    node.children.iter().filter_map(alike).filter_map(pid).collect()
}

fn key_holder(index: &PlanIndex<'_>, task: TaskId, again: Option<i64>) -> Result<SelectedSession, Refused> {
    let row = index.view.task(task, again);
    let refused = |name: String, reason: &str| Refused::new(name, Subject::Task(task), reason);
    let Some(row) = row else {
        return Err(refused(format!("task {}", task.id), "no longer exists"));
    };
    let name = crate::text::one_line(&row.name(index.snapshot)).into_owned();
    match (row.holder, row.tag) {
        (Some(pid), Some(tag)) => {
            let holds = Some((tag, LockMode::Exclusive));
            Ok(SelectedSession { holds, work: work::of_task(index, row), ..SelectedSession::new(pid, None) })
        }
        (None, _) if row.held => Err(refused(name, "a prepared transaction holds its key, not a session")),
        _ => Err(refused(name, "no session holds its key: nothing to terminate")),
    }
}

fn several(index: &PlanIndex<'_>, tag: LockTag) -> Refused {
    let lock = index.view.index.awaited_locks().get(&tag);
    let reason = match lock.map_or(0, |lock| lock.holders.len()) {
        0 => "has no holder now".to_owned(),
        holders => {
            format!(
                "has {} holders: Enter lists them; select one of them",
                crate::text::count(holders as u64)
            )
        }
    };
    Refused::new("this lock", Subject::Lock(tag), reason)
}

fn prepared(index: &PlanIndex<'_>, xact: VirtualTransaction) -> Refused {
    let party = Party::Prepared(xact);
    Refused::new(index.party(party), Subject::Party(party), caution::prepared(index, xact))
}

fn party_of(index: &PlanIndex<'_>, chosen: RowId) -> Option<Party> {
    match chosen {
        RowId::Backend(id) | RowId::Lock(_, LockOwner::Backend(id), _) => {
            let backend = index.backend(id.pid);
            let same = backend.is_none_or(|backend| {
                id.backend_start.is_none() || backend.backend_start == id.backend_start
            });
            same.then(|| Party::Backend(backend.map_or(id.pid, crate::model::backend::Backend::group)))
        }
        RowId::Group(parent, ..) => Some(parent),
        RowId::Prepared(xact) => Some(Party::Prepared(xact)),
        _ => None,
    }
}

/// The root above a row, or the row and the others that must end with it.
fn also_meant(index: &PlanIndex<'_>, ask: &Ask, chosen: RowId, meant: &mut SessionSelection) {
    let Some(party) = party_of(index, chosen) else {
        meant.refused.push(Refused::new("this row", Subject::Server, "is in no chain"));
        return;
    };
    let found = match ask.scope {
        TargetScope::Blockers => blockers(index, ask.verb, party),
        TargetScope::This | TargetScope::Root => root(index, party).map(|root| vec![root]),
    };
    let parties = match found {
        Ok(parties) => parties,
        Err(reason) => {
            meant.refused.push(Refused::new(index.party(party), Subject::Party(party), reason));
            return;
        }
    };
    for party in parties {
        if !ask.shows(party) {
            meant.hidden += 1;
            continue;
        }
        match party {
            Party::Backend(pid) => {
                let start = index.backend(pid).and_then(|backend| backend.backend_start);
                meant.picks.push(SelectedSession::new(pid, start));
            }
            Party::Prepared(xact) => meant.refused.push(prepared(index, xact)),
        }
    }
}

fn root(index: &PlanIndex<'_>, party: Party) -> Result<Party, String> {
    let nodes = &index.graph.tree.nodes;
    let Some((at, _)) = index.node(party) else {
        return Err("neither waits nor blocks".to_owned());
    };
    let mut top = at;
    while let Some(parent) = nodes.get(top).and_then(|node| node.parent) {
        top = parent;
    }
    match nodes.get(top) {
        Some(node) if node.cycle.is_some() => {
            Err("is in or behind a deadlock, which has no root: select one of its members".to_owned())
        }
        Some(node) if node.waits.is_none() => Ok(node.party),
        _ => Err("waits without a blocker: it has no root".to_owned()),
    }
}

/// A party and the others that must end before the sessions behind it continue: those wait for several sessions.
fn blockers(index: &PlanIndex<'_>, verb: Verb, party: Party) -> Result<Vec<Party>, String> {
    let release = index.release(verb, &[party]);
    let has_more = !release.still.is_empty() && !release.others.is_empty()
        || !release.unsure.is_empty() && !release.possible.is_empty();
    if !has_more || release.more {
        return Err("no other session has to end with it".to_owned());
    }
    let mut all = vec![party];
    all.extend(release.others);
    all.extend(release.possible);
    let mut seen = FxHashSet::default();
    all.retain(|party| seen.insert(*party));
    Ok(all)
}

pub(super) fn offers(index: &PlanIndex<'_>, ask: &Ask) -> Vec<(TargetScope, String)> {
    let [chosen] = ask.chosen.as_slice() else { return Vec::new() };
    let Some(party) = party_of(index, *chosen).filter(|_| ask.from_chains) else { return Vec::new() };
    let mut offers = Vec::new();
    let is_group = matches!(chosen, RowId::Group(..));
    // A root that runs no query cannot be cancelled.
    let is_possible = |root: Party| {
        ask.verb != Verb::Cancel || index.backend(root.pid()).is_some_and(|root| has_query(root).is_ok())
    };
    if let Ok(root) = root(index, party)
        && (is_group || root != party)
        && is_possible(root)
    {
        offers.push((TargetScope::Root, format!("the root, {}", index.party(root))));
    }
    if let Ok(blockers) = blockers(index, ask.verb, party)
        && root(index, party) == Ok(party)
    {
        let promise = index.promise_of(ask.verb, &blockers).numbers(true);
        let shown = blockers.iter().filter(|party| ask.shows(**party)).count();
        let is_sure = index.release(ask.verb, &[party]).possible.is_empty();
        let kind = if is_sure { "blockers" } else { "possible blockers" };
        offers.push((
            TargetScope::Blockers,
            format!("all {} {kind}: {promise}", crate::text::count(shown as u64)),
        ));
    }
    if !offers.is_empty() {
        let this = if is_group { "these sessions" } else { "this session" };
        offers.insert(0, (TargetScope::This, this.to_owned()));
    }
    offers
}
