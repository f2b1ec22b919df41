//! Which sessions are meant by the rows that were chosen.

use rustc_hash::FxHashSet;

use super::{hands, refuse, work};
use crate::model::Timestamp;
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::plan::look::Ground;
use crate::model::plan::{Ask, Chosen, LeaseHeld, Refused, Scope, Stake};
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;

/// A session that is meant.
#[derive(Debug, Clone)]
pub(super) struct Pick {
    pub(super) pid: i32,
    /// When it began, where the row that was chosen says so.
    pub(super) start: Option<Timestamp>,
    /// The lock for which it was chosen.
    pub(super) holds: Option<(LockTag, LockMode)>,
    /// What it was chosen for, where that is recorded in tables of our own.
    pub(super) work: Option<Stake>,
    /// The parallel worker in whose place it is meant.
    pub(super) via: Option<i32>,
    /// The lease for which it was chosen.
    pub(super) lease: Option<LeaseHeld>,
}

impl Pick {
    pub(super) fn new(pid: i32, start: Option<Timestamp>) -> Self {
        Self { pid, start, holds: None, work: None, via: None, lease: None }
    }
}

/// Everybody who is meant.
#[derive(Debug, Default)]
pub(super) struct Meant {
    pub(super) picks: Vec<Pick>,
    pub(super) refused: Vec<Refused>,
    /// Left out, since the filter hides them.
    pub(super) hidden: usize,
}

impl Meant {
    fn take(&mut self, found: Result<Pick, Refused>) {
        match found {
            Ok(pick) => self.picks.push(pick),
            Err(refused) => self.refused.push(refused),
        }
    }
}

/// Who is meant, each once.
pub(super) fn meant(ground: &Ground<'_>, ask: &Ask) -> Meant {
    let mut meant = Meant::default();
    for chosen in &ask.chosen {
        match ask.scope {
            Scope::This => this(ground, ask, *chosen, &mut meant),
            Scope::Root | Scope::Below => beside(ground, ask, *chosen, &mut meant),
        }
    }
    for pick in &mut meant.picks {
        lead(ground, pick);
    }
    let mut seen = FxHashSet::default();
    meant.picks.retain(|pick| seen.insert(pick.pid));
    let mut told = FxHashSet::default();
    meant.refused.retain(|refused| told.insert((refused.subject.clone(), refused.name.clone())));
    if ask.is_of_chains() {
        let place = |pick: &Pick| ground.node(Party::Backend(pick.pid)).map_or(usize::MAX, |(at, _)| at);
        meant.picks.sort_by_key(place);
    }
    meant
}

/// A parallel worker has no session of its own: its leader is meant.
fn lead(ground: &Ground<'_>, pick: &mut Pick) {
    let Some(backend) = ground.backend(pick.pid) else { return };
    if backend.group() != pick.pid && pick.start.is_none_or(|start| backend.backend_start == Some(start)) {
        let via = Some(pick.pid);
        *pick = Pick { via, holds: pick.holds, lease: pick.lease.take(), ..Pick::new(backend.group(), None) };
    }
}

/// The row itself.
fn this(ground: &Ground<'_>, ask: &Ask, chosen: Chosen, meant: &mut Meant) {
    match chosen {
        Chosen::Backend(id) => meant.picks.push(Pick::new(id.pid, id.backend_start)),
        Chosen::Holder(id, tag, mode) => {
            meant.picks.push(Pick { holds: Some((tag, mode)), ..Pick::new(id.pid, id.backend_start) });
        }
        Chosen::Group(parent, tag, mode) => {
            let members = members(ground, parent, tag, mode);
            if members.is_empty() {
                let reason = "nobody waits like this any more";
                meant.refused.push(Refused::new("the queue", Subject::Party(parent), reason));
            }
            let all = members.len();
            let shown = members.into_iter().filter(|pid| ask.shows(Party::Backend(*pid)));
            let before = meant.picks.len();
            meant.picks.extend(shown.map(|pid| Pick::new(pid, None)));
            meant.hidden += all - (meant.picks.len() - before);
        }
        Chosen::Prepared(xact) => meant.refused.push(prepared(ground, xact)),
        Chosen::Task(task, again) => meant.take(key_holder(ground, task, again)),
        Chosen::Item(item) => meant.take(hands::of_item(ground, item)),
        Chosen::Lease(lease) => meant.take(hands::of_lease(ground, lease)),
        Chosen::Other => {
            meant.refused.push(Refused::new("this row", Subject::Server, "is not a session"));
        }
    }
}

/// The waiters that are folded into one line: those under `parent` who block nobody.
fn members(ground: &Ground<'_>, parent: Party, tag: LockTag, mode: LockMode) -> Vec<i32> {
    let tree = &ground.graph.tree;
    let Some((_, node)) = ground.node(parent) else { return Vec::new() };
    let alike = |at: &usize| {
        let node = tree.nodes.get(*at)?;
        let queue = ground.graph.queues.get(node.waits?.0)?;
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

/// Who holds the key of a task.
fn key_holder(ground: &Ground<'_>, task: TaskId, again: Option<i64>) -> Result<Pick, Refused> {
    let rows = &ground.look.view.tasks.rows;
    let row = rows.iter().find(|row| row.task == task && row.again == again);
    let refused = |name: String, reason: &str| Refused::new(name, Subject::Task(task), reason);
    let Some(row) = row else {
        return Err(refused(format!("task {}", task.id), "is gone"));
    };
    let name = crate::text::one_line(&row.name(ground.snapshot)).into_owned();
    match (row.holder, row.tag) {
        (Some(pid), Some(tag)) => {
            let holds = Some((tag, LockMode::Exclusive));
            Ok(Pick { holds, work: work::of_task(ground, row), ..Pick::new(pid, None) })
        }
        (None, _) if row.held => Err(refused(name, "a prepared transaction holds its key, not a session")),
        _ => Err(refused(name, "nobody holds its key: there is no session to end")),
    }
}

fn prepared(ground: &Ground<'_>, xact: VirtualTransaction) -> Refused {
    let party = Party::Prepared(xact);
    Refused::new(ground.party_name(party), Subject::Party(party), refuse::prepared(ground, xact))
}

/// The party of a row of the forest.
fn party_of(ground: &Ground<'_>, chosen: Chosen) -> Option<Party> {
    match chosen {
        Chosen::Backend(id) | Chosen::Holder(id, ..) => {
            let backend = ground.backend(id.pid);
            let same = backend.is_none_or(|backend| {
                id.backend_start.is_none() || backend.backend_start == id.backend_start
            });
            same.then(|| Party::Backend(backend.map_or(id.pid, crate::model::backend::Backend::group)))
        }
        Chosen::Group(parent, ..) => Some(parent),
        Chosen::Prepared(xact) => Some(Party::Prepared(xact)),
        Chosen::Task(..) | Chosen::Lease(_) | Chosen::Item(_) | Chosen::Other => None,
    }
}

/// The root above a row, or everybody below it.
fn beside(ground: &Ground<'_>, ask: &Ask, chosen: Chosen, meant: &mut Meant) {
    let Some(party) = party_of(ground, chosen) else {
        meant.refused.push(Refused::new("this row", Subject::Server, "is in no chain"));
        return;
    };
    let found = match ask.scope {
        Scope::Below => below(ground, party),
        Scope::This | Scope::Root => root(ground, party).map(|root| vec![root]),
    };
    let parties = match found {
        Ok(parties) => parties,
        Err(reason) => {
            meant.refused.push(Refused::new(ground.party_name(party), Subject::Party(party), reason));
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
                let start = ground.backend(pid).and_then(|backend| backend.backend_start);
                meant.picks.push(Pick::new(pid, start));
            }
            Party::Prepared(xact) => meant.refused.push(prepared(ground, xact)),
        }
    }
}

/// The top of the tree that a party is shown in.
fn root(ground: &Ground<'_>, party: Party) -> Result<Party, String> {
    let nodes = &ground.graph.tree.nodes;
    let Some((at, _)) = ground.node(party) else {
        return Err("neither waits nor blocks".to_owned());
    };
    let mut top = at;
    while let Some(parent) = nodes.get(top).and_then(|node| node.parent) {
        top = parent;
    }
    match nodes.get(top) {
        Some(node) if node.cycle.is_some() => {
            Err("is in or behind a deadlock, which has no root: choose one of its members".to_owned())
        }
        Some(node) if node.waits.is_none() => Ok(node.party),
        _ => Err("waits, and nobody is in its way: there is no root".to_owned()),
    }
}

/// Everybody who is shown under a party.
fn below(ground: &Ground<'_>, party: Party) -> Result<Vec<Party>, String> {
    let nodes = &ground.graph.tree.nodes;
    let nobody = || Err("no session waits below it".to_owned());
    let Some((at, node)) = ground.node(party) else { return nobody() };
    // Parents come before their children and nothing comes between the members of a tree.
    let last = at + node.below as usize;
    let found: Vec<Party> =
        nodes.get(at + 1..=last).unwrap_or_default().iter().map(|node| node.party).collect();
    if found.is_empty() { nobody() } else { Ok(found) }
}

/// `all 17 shown below it`: what waits behind it may be more, and be shown below somebody else.
pub(in crate::model::plan) fn below_words(count: usize) -> String {
    format!("all {} shown below it", crate::text::count(count as u64))
}

/// Who else could be meant, where one row of the forest was chosen.
pub(super) fn offers(ground: &Ground<'_>, ask: &Ask) -> Vec<(Scope, String)> {
    let [chosen] = ask.chosen.as_slice() else { return Vec::new() };
    let Some(party) = party_of(ground, *chosen).filter(|_| ask.from_chains) else { return Vec::new() };
    let mut offers = Vec::new();
    let is_group = matches!(chosen, Chosen::Group(..));
    if let Ok(root) = root(ground, party)
        && (is_group || root != party)
    {
        offers.push((Scope::Root, format!("the root, {}", ground.party_name(root))));
    }
    let below =
        below(ground, party).map_or(0, |below| below.iter().filter(|party| ask.shows(**party)).count());
    if below > 0 && !is_group {
        offers.push((Scope::Below, below_words(below)));
    }
    if !offers.is_empty() {
        offers.insert(0, (Scope::This, "this one".to_owned()));
    }
    offers
}
