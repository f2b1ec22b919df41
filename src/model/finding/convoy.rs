use super::check_input::{CheckInput, party_text};
use super::{Finding, LIMIT, Severity, root_blocker, wait};
use crate::model::backend::State;
use crate::model::held_up::held_up;
use crate::model::plan::Verb;
use crate::model::statement;
use crate::model::wait_graph::{Party, Queue, Root, Waiter};
use crate::model::words;

const CHECK: &str = "convoy";

/// Bytes of a statement that are read.
const STATEMENT: usize = 400;

/// A request that conflicts with requests behind it which would not conflict with the holders: without it they would not
/// wait. An `ALTER TABLE` behind a long query does this to every reader of the table.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let least = look.thresholds.convoy.max(1);
    let mut convoys: Vec<(u32, &Queue, &Waiter)> = Vec::new();
    for queue in &look.graph.queues {
        if queue.waiters.len() > least as usize {
            let found = held_up(queue).into_iter().filter(|(_, behind)| *behind >= least);
            convoys
                .extend(found.filter_map(|(place, behind)| Some((behind, queue, queue.waiters.get(place)?))));
        }
    }
    convoys.sort_by_key(|(behind, _, waiter)| (std::cmp::Reverse(*behind), waiter.wait_start, waiter.pid));
    let left_out = convoys.len().saturating_sub(LIMIT);
    let listed = convoys.into_iter().take(LIMIT).map(|(behind, queue, waiter)| {
        let who = party_text(waiter.party);
        let age = look.age_text(waiter.wait_start);
        let holder = queue.holders.first().map(|holder| holder.party.pid());
        let awaited = look.awaited(&queue.tag, waiter.pid);
        let target = look.target(awaited, holder);
        let (root, statement) = (root_of(look, waiter.party), statement(look, waiter.pid));
        let root = root.map(|root| format!(" for {}", party_text(root.party))).unwrap_or_default();
        let promise = look.view.promise_of(Verb::Cancel, &[waiter.party]);
        let head = format!("{who}{statement} waits{age}{root}");
        let object = format!(" for {}", words::request(waiter.mode, awaited, &target));
        let summary = format!("{head}{object}, {}", promise.words());
        let row = format!("{who}{statement} waits{root}{object}, {}", promise.words());
        let finding = Finding::new(CHECK, Severity::Warning, summary, look.subject(waiter.party));
        // The name at the end is cut, not the numbers.
        let finding = finding.short(format!("{head}, {} · {target}", promise.short()));
        let finding = finding.in_row(waiter.wait_start, row, &object);
        let finding = finding.about(choice(look, waiter.party)).running(look.statement(waiter.party.pid()));
        Finding {
            blocked: promise.blocked.max(behind),
            since: waiter.wait_start,
            help: Some("cancel"),
            ..finding
        }
        .expected(look.expected_waiter(waiter.party, awaited, waiter.wait_start))
    });
    listed.chain(Finding::more(CHECK, left_out)).collect()
}

/// Merges a convoy and the root that it waits for into one finding. If the root is active, and cancelling the request at
/// the head of the queue frees more sessions at once than ending the root, the finding is that of the request, with the
/// higher severity of both; otherwise it is that of the root.
pub(super) fn one_for_each(findings: &mut Vec<Finding>, look: &CheckInput<'_>) {
    let graph = &look.graph;
    let works =
        |party: Party| look.backend(party.pid()).and_then(|backend| backend.state) == Some(State::Active);
    let is_open = |finding: &Finding, check: &str| finding.check == check && finding.expected.is_none();
    let mut at = 0;
    while let Some(finding) = findings.get(at) {
        let head = finding.pid().filter(|_| is_open(finding, CHECK)).map(Party::Backend);
        let root = head.and_then(|head| graph.roots_above(head).first().copied());
        let of_root = root.and_then(|root| {
            let is_it = |finding: &Finding| is_open(finding, root_blocker::CHECK) && finding.is_about(root);
            Some((root, findings.iter().position(is_it)?))
        });
        let (Some(head), Some((root, place))) = (head, of_root) else {
            at += 1;
            continue;
        };
        let ends = graph.roots.iter().find(|one| one.party == root);
        let (frees, blocks) = ends.map_or((0, 0), |root| (root.frees, root.blocked));
        let is_cheaper = works(root)
            && 2 * finding.blocked >= blocks
            && look.view.promise_of(Verb::Cancel, &[head]).now > frees;
        let gone = findings.remove(if is_cheaper { place } else { at });
        if !is_cheaper {
            // The wait of the request is not a separate finding either.
            findings.retain(|finding| finding.check != wait::CHECK || !finding.is_about(head));
            continue;
        }
        at = if place < at { at - 1 } else { at };
        if let Some(convoy) = findings.get_mut(at) {
            convoy.severity = convoy.severity.max(gone.severity);
        }
        at += 1;
    }
}

fn root_of<'a>(look: &'a CheckInput<'_>, party: Party) -> Option<&'a Root> {
    let graph = &look.graph;
    let root = graph.roots_above(party).first().copied()?;
    graph.roots.iter().find(|one| one.party == root)
}

/// ` ALTER TABLE`: the first words of the request's statement.
fn statement(look: &CheckInput<'_>, pid: i32) -> String {
    const WORDS: usize = 2;
    let query = look.backend(pid).and_then(|backend| backend.query.as_ref());
    let statement = query.and_then(|query| statement::first(query.unredacted(), STATEMENT));
    let words =
        statement.map(|statement| statement.name.split(' ').take(WORDS).collect::<Vec<_>>().join(" "));
    words.map(|words| format!(" {words}")).unwrap_or_default()
}

/// `root 4312: 1 continues now, 16 in turn · deploy@ci`: the operator has to choose one of two remedies.
fn choice(look: &CheckInput<'_>, party: Party) -> String {
    let root = root_of(look, party);
    let choice = root
        .map(|root| format!("root {}: {}", party_text(root.party), look.view.promise(root).numbers(true)));
    let about = look.about(party.pid(), None);
    [choice.unwrap_or_default(), about]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" · ")
}
