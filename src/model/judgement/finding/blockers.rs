//! Sessions that block others: the roots of chains, and requests at the head of a queue.

use rustc_hash::FxHashMap;

use super::check_input::{CheckInput, party_text};
use super::{Finding, Severity, listed, waits};
use crate::model::awaited_locks::waits_by_mode;
use crate::model::backend::{Backend, State};
use crate::model::consequence::KEPT;
use crate::model::lock::{LockTag, LockType};
use crate::model::normal_wait::NormalWait;
use crate::model::plan::Verb;
use crate::model::wait_graph::{Party, Queue, Root, WaitGraph, Waiter};
use crate::model::{Timestamp, statement, words};
use crate::order::SortExt;

const ROOT_BLOCKER: &str = "root_blocker";
const LEADER: &str = "leader";

/// The words for a root that keeps a session-level lock: its current statement shows nothing about the lock.
const KEEPS: &str = " runs other statements";

/// Critical if it has been idle in transaction for too long, is idle with a session-level lock, or blocks too many; a
/// warning if it is idle in transaction, waits for what may never come, or a session has waited for too long.
pub(super) fn root_blockers(input: &CheckInput<'_>) -> Vec<Finding> {
    let held = held_locks(input);
    let backends = input.blocking_roots().filter(|root| matches!(root.party, Party::Backend(_)));
    listed(ROOT_BLOCKER, backends, |root| root_finding(input, root, held.get(&root.party).copied()))
}

/// `4312 leads scheduler, 2 sessions wait to lead`, `3 sessions wait for a permit of exports`. A lease has its own finding.
pub(super) fn normal_waits(input: &CheckInput<'_>) -> Vec<Finding> {
    let finding = |root: &Root| {
        let pid = party_text(root.party);
        // The first session in a queue waits, too.
        let (check, summary) = match input.normal_wait(root.party)? {
            NormalWait::Leader(name) => {
                (LEADER, format!("{pid} leads {name}, {} to lead", wait_words(root.blocked)))
            }
            NormalWait::Permit(name) => {
                ("permit_queue", format!("{} for a permit of {name}", wait_words(root.blocked + 1)))
            }
            NormalWait::Lease(_) => return None,
        };
        let finding = Finding::new(check, Severity::Info, summary, input.subject(root.party));
        Some(Finding { since: root.longest_wait, ..finding.about(input.about(root.party.pid(), None)) })
    };
    listed(LEADER, input.graph.roots.iter().filter_map(finding), |finding| finding)
}

/// `1 session waits`, `3 sessions wait`
pub(super) fn wait_words(number: u32) -> String {
    if number == 1 {
        "1 session waits".to_owned()
    } else {
        format!("{} sessions wait", crate::text::count(number.into()))
    }
}

fn held_locks<'a>(input: &CheckInput<'a>) -> FxHashMap<Party, &'a LockTag> {
    let mut held = FxHashMap::default();
    for queue in &input.view.view.graph.queues {
        let waiters = queue.waiters.len();
        for holder in &queue.holders {
            let entry = held.entry(holder.party).or_insert((waiters, &queue.tag));
            if waiters > entry.0 {
                *entry = (waiters, &queue.tag);
            }
        }
    }
    held.into_iter().map(|(party, (_, tag))| (party, tag)).collect()
}

/// The awaited object of a lock; for a transaction the row behind it, if the first waiter's tuple lock shows it.
fn awaited<'b>(input: &'b CheckInput<'_>, tag: &'b LockTag) -> &'b LockTag {
    let queue = input.graph.queues.iter().find(|queue| queue.tag == *tag);
    let waiter = queue.and_then(|queue| queue.waiters.first());
    waiter.map_or(tag, |waiter| input.index.awaited(tag, waiter.pid))
}

fn root_finding(input: &CheckInput<'_>, root: &Root, held: Option<&LockTag>) -> Finding {
    let pid = root.party.pid();
    let backend = input.backend(pid);
    let state = backend.and_then(|backend| backend.state);
    let keeps = input.view.kept_key(root.party).is_some();
    let doing = match backend {
        Some(_) if keeps => RootActivity { kind: KEEPS.to_owned(), ..RootActivity::default() },
        backend => backend.map_or_else(RootActivity::default, RootActivity::of),
    };
    let (long, short) = doing.words(input);
    let promise = input.view.promise(root);
    let object = held.map(|tag| input.target(awaited(input, tag), Some(pid)));
    let target = object.clone().filter(|_| keeps || state == Some(State::Idle));
    // For an idle session the summary contains what it holds.
    let about = input.about(pid, object.as_deref().filter(|_| target.is_none()));
    // In the short form the name comes last, so that the numbers are not cut.
    let holds = target.map_or_else(String::new, |target| format!(", holds {target}"));
    let summary = format!("{pid}{long}{holds}, {}", promise.words());
    let is_key = held.is_some_and(|tag| tag.locktype() == LockType::Advisory);
    // `holds "nightly-export"`, `holds advisory 1`: the row has room for the kind of lock.
    let lock_in_row = match holds.strip_prefix(", holds ") {
        Some(name) if is_key => {
            let bare = name.strip_prefix("advisory lock ").or_else(|| name.strip_prefix("advisory "));
            format!(", holds advisory lock {}", bare.unwrap_or(name))
        }
        _ => holds.clone(),
    };
    let RootActivity { kind, state: words, since: began, wait } = doing;
    let row = format!("{pid}{kind}{words}{wait}{lock_in_row}, {}", promise.words());
    let remedy = backend.map(|backend| input.view.remedy(backend, is_key));
    let itself = input.view.waits_for_itself(root.party);
    let reason =
        remedy.as_ref().and_then(|remedy| remedy.as_ref().err()).map(|why| format!("no shortcut: {why}"));
    let kept = keeps.then(|| KEPT.to_owned());
    let parts = [itself, kept, reason, Some(about).filter(|about| !about.is_empty())];
    let about = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    // A session that got its lock a moment ago does what the others waited for: it should not be terminated yet.
    // If it blocks many, the severity is not reduced.
    let is_young = input.new_roots.is_young(root.party, input.snapshot.taken_at)
        && root.blocked < input.thresholds.blocked;
    let severity = if keeps { Severity::Critical } else { root_severity(input, root, backend) };
    let severity = if is_young { severity.min(Severity::Info) } else { severity };
    let verb = remedy.and_then(Result::ok).filter(|_| !is_young);
    let finding = Finding::new(ROOT_BLOCKER, severity, summary, input.subject(root.party));
    Finding {
        blocked: root.blocked,
        since: root.longest_wait,
        help: verb.map(|verb| if verb == Verb::Cancel { "cancel" } else { "terminate" }),
        ..finding
            .short(format!("{pid}{short}, {}{holds}", promise.short()))
            .in_row(began.or(root.longest_wait), row, &lock_in_row)
            .about(about)
            .running(input.statement(pid))
    }
    .expected(input.expected(root.party, None, root.longest_wait))
}

fn root_severity(input: &CheckInput<'_>, root: &Root, backend: Option<&Backend>) -> Severity {
    let thresholds = input.thresholds;
    let state = backend.and_then(|backend| backend.state);
    let idle_since = backend.and_then(|backend| backend.state_change);
    let in_transaction = state.is_some_and(State::is_idle_in_transaction);
    let too_long = in_transaction && input.is_older(idle_since, thresholds.idle_in_transaction);
    if too_long || state == Some(State::Idle) || root.blocked >= thresholds.blocked {
        Severity::Critical
    } else if in_transaction
        || backend.is_some_and(waits::stalls)
        || input.is_older(root.longest_wait, thresholds.wait)
    {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// The activity of a root. Each text begins with a blank unless it is empty.
#[derive(Default)]
struct RootActivity {
    /// Its kind, if it is not a client backend.
    kind: String,
    state: String,
    /// The start of the state.
    since: Option<Timestamp>,
    /// Its own wait.
    wait: String,
}

impl RootActivity {
    fn of(backend: &Backend) -> Self {
        let kind = match backend.backend_type.as_deref() {
            None | Some("client backend") => String::new(),
            Some("startup") => {
                let kind = " startup process (the cause is on the primary)".to_owned();
                return Self { kind, ..Self::default() };
            }
            Some("autovacuum worker") => {
                let why = if backend.prevents_wraparound() { " to prevent wraparound" } else { "" };
                let kind = format!(" autovacuum{why}");
                return Self { kind, since: backend.xact_start, ..Self::default() };
            }
            Some(kind) => format!(" {kind}"),
        };
        let (state, since, wait) = match backend.state {
            Some(State::Active | State::FastpathFunctionCall) => {
                (" active".to_owned(), backend.query_start, own_wait(backend))
            }
            Some(state) if state == State::Idle || state.is_idle_in_transaction() => {
                (format!(" {}", state.as_str()), backend.state_change, String::new())
            }
            _ => Default::default(),
        };
        Self { kind, state, since, wait }
    }

    /// The long and the short form, with the age.
    fn words(&self, input: &CheckInput<'_>) -> (String, String) {
        let Self { kind, state, since, wait } = self;
        let (age, short) = (input.age_text(*since), state.replace("idle in transaction", "idle in xact"));
        (format!("{kind}{state}{age}{wait}"), format!("{kind}{short}{age}"))
    }
}

fn own_wait(backend: &Backend) -> String {
    match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        (Some("Lock"), _) => String::new(),
        (Some(kind), Some(event)) if kind != event => format!(" ({kind} {event})"),
        (Some(_), Some(event)) => format!(" ({event})"),
        _ => String::new(),
    }
}

/// Seconds before a new root is reported as a problem: a waiter that gets its lock is a root for as long as its work takes.
const YOUNG: f64 = 5.0;

#[derive(Debug, Clone, Default)]
pub struct NewRoots {
    /// None for those that existed at the first poll.
    pub(crate) since: FxHashMap<Party, Option<Timestamp>>,
    pub(crate) has_observed: bool,
}

impl NewRoots {
    pub fn observe(&mut self, graph: &WaitGraph, now: Timestamp) {
        let first = !self.has_observed;
        let before = std::mem::take(&mut self.since);
        let since = |party: Party| match before.get(&party) {
            Some(since) => *since,
            None if first => None,
            None => Some(now),
        };
        self.since = graph.roots.iter().map(|root| (root.party, since(root.party))).collect();
        self.has_observed = true;
    }

    /// The time without a connection is unknown.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn is_young(&self, party: Party, now: Timestamp) -> bool {
        let since = self.since.get(&party).copied().flatten();
        since.is_some_and(|since| (now - since).as_seconds_f64() < YOUNG)
    }
}

const CONVOY: &str = "convoy";

/// Bytes of a statement that are read.
const STATEMENT: usize = 400;

/// A request that conflicts with requests behind it which would not conflict with the holders: without it they would not
/// wait. An `ALTER TABLE` behind a long query does this to every reader of the table.
pub(super) fn convoys(input: &CheckInput<'_>) -> Vec<Finding> {
    let least = input.thresholds.convoy.max(1);
    let mut convoys: Vec<(u32, &Queue, &Waiter)> = Vec::new();
    for queue in &input.graph.queues {
        if queue.waiters.len() > least as usize {
            let found = waits_by_mode(queue).into_iter().filter(|(_, behind)| *behind >= least);
            convoys
                .extend(found.filter_map(|(place, behind)| Some((behind, queue, queue.waiters.get(place)?))));
        }
    }
    convoys.order_by_key(|(behind, _, waiter)| (std::cmp::Reverse(*behind), waiter.wait_start, waiter.pid));
    listed(CONVOY, convoys.into_iter(), |(behind, queue, waiter)| {
        let who = party_text(waiter.party);
        let age = input.age_text(waiter.wait_start);
        let holder = queue.holders.first().map(|holder| holder.party.pid());
        let awaited = input.index.awaited(&queue.tag, waiter.pid);
        let target = input.target(awaited, holder);
        let (root, statement) = (root_of(input, waiter.party), statement_words(input, waiter.pid));
        let root = root.map(|root| format!(" for {}", party_text(root.party))).unwrap_or_default();
        let promise = input.view.promise_of(Verb::Cancel, &[waiter.party]);
        let head = format!("{who}{statement} waits{age}{root}");
        let object = format!(" for {}", words::request(waiter.mode, awaited, &target));
        let summary = format!("{head}{object}, {}", promise.words());
        let row = format!("{who}{statement} waits{root}{object}, {}", promise.words());
        let finding = Finding::new(CONVOY, Severity::Warning, summary, input.subject(waiter.party));
        // The name at the end is cut, not the numbers.
        let finding = finding.short(format!("{head}, {} · {target}", promise.short()));
        let finding = finding.in_row(waiter.wait_start, row, &object);
        let finding = finding.about(choice(input, waiter.party)).running(input.statement(waiter.party.pid()));
        Finding {
            blocked: promise.blocked.max(behind),
            since: waiter.wait_start,
            help: Some("cancel"),
            ..finding
        }
        .expected(input.expected_waiter(waiter.party, awaited, waiter.wait_start))
    })
}

/// Merges a convoy and the root that it waits for into one finding. If the root is active, and cancelling the request at
/// the head of the queue frees more sessions at once than ending the root, the finding is that of the request, with the
/// higher severity of both; otherwise it is that of the root.
pub(super) fn one_for_each(findings: &mut Vec<Finding>, input: &CheckInput<'_>) {
    let graph = &input.graph;
    let works =
        |party: Party| input.backend(party.pid()).and_then(|backend| backend.state) == Some(State::Active);
    let is_open = |finding: &Finding, check: &str| finding.check == check && finding.expected.is_none();
    let mut at = 0;
    while let Some(finding) = findings.get(at) {
        let head = finding.pid().filter(|_| is_open(finding, CONVOY)).map(Party::Backend);
        let root = head.and_then(|head| graph.roots_above(head).first().copied());
        let of_root = root.and_then(|root| {
            let is_it = |finding: &Finding| is_open(finding, ROOT_BLOCKER) && finding.is_about(root);
            Some((root, findings.iter().position(is_it)?))
        });
        let (Some(head), Some((root, place))) = (head, of_root) else {
            at += 1;
            continue;
        };
        let ends = graph.roots.iter().find(|one| one.party == root);
        // One of those in turn continues at once if no other session is known to.
        let frees = ends.map_or(0, |root| root.frees.max(root.in_turn.min(1)));
        let blocks = ends.map_or(0, |root| root.blocked);
        let is_cheaper = works(root)
            && 2 * finding.blocked >= blocks
            && input.view.promise_of(Verb::Cancel, &[head]).now > frees;
        let gone = findings.remove(if is_cheaper { place } else { at });
        if !is_cheaper {
            // The wait of the request is not a separate finding either.
            findings.retain(|finding| finding.check != waits::LONG_WAIT || !finding.is_about(head));
            continue;
        }
        at = if place < at { at - 1 } else { at };
        if let Some(convoy) = findings.get_mut(at) {
            convoy.severity = convoy.severity.max(gone.severity);
        }
        at += 1;
    }
}

fn root_of<'a>(input: &'a CheckInput<'_>, party: Party) -> Option<&'a Root> {
    let graph = &input.graph;
    let root = graph.roots_above(party).first().copied()?;
    graph.roots.iter().find(|one| one.party == root)
}

/// ` ALTER TABLE`: the first words of the request's statement.
fn statement_words(input: &CheckInput<'_>, pid: i32) -> String {
    const WORDS: usize = 2;
    let query = input.backend(pid).and_then(|backend| backend.query.as_ref());
    let statement = query.and_then(|query| statement::first(query.unredacted(), STATEMENT));
    let words =
        statement.map(|statement| statement.name.split(' ').take(WORDS).collect::<Vec<_>>().join(" "));
    words.map(|words| format!(" {words}")).unwrap_or_default()
}

/// `root 4312: 1 continues now, 16 in turn · deploy@ci`: the operator has to choose one of two remedies.
fn choice(input: &CheckInput<'_>, party: Party) -> String {
    let root = root_of(input, party);
    let choice = root
        .map(|root| format!("root {}: {}", party_text(root.party), input.view.promise(root).numbers(true)));
    let about = input.about(party.pid(), None);
    [choice.unwrap_or_default(), about]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}
