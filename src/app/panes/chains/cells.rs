use rustc_hash::FxHashSet;

use super::{ChainPlace, ChainRow};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::app::panes::backends::{root_state, state_value};
use crate::app::panes::cell::{fit_names, object_first};
use crate::app::panes::{Cell, SortValue, backends, forest};
use crate::model::finding::Severity;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::lock_waits::contended;
use crate::model::promise::Promise;
use crate::model::wait_graph::{Party, TreeNode};
use crate::model::words;

pub(super) fn pid(place: ChainPlace<'_>, room: u16) -> Cell {
    let label = match place.party {
        _ if place.row.is_run => {
            let label = format!("…{}", crate::text::count(place.row.folded.into()));
            // The level must be visible: it is behind the session above.
            let room = usize::from(room).saturating_sub(place.row.depth.into());
            if label.chars().count() + " deep".len() <= room { label + " deep" } else { label }
        }
        _ if place.is_group() => "queue".to_owned(),
        Party::Backend(pid) => pid.to_string(),
        Party::Prepared(_) => "prepared".to_owned(),
    };
    let spare = usize::from(room).saturating_sub(label.chars().count());
    let tone = if place.is_top() { Tone::Title } else { Tone::Plain };
    Cell::toned(format!("{}{label}", guide(place.row, spare)), tone)
}

/// The lines of the tree before a name, one column per level. A chain that is deeper than the column is wide shows its
/// depth instead: the name is never cut.
fn guide(row: ChainRow, room: usize) -> String {
    let corner = if row.last { "└" } else { "├" };
    match usize::from(row.depth) {
        0 => String::new(),
        depth if depth <= room => {
            let goes_on =
                |depth: u16| row.rails.checked_shr(depth.into()).is_some_and(|rails| rails & 1 == 1);
            let rails = (1..row.depth).map(|depth| if goes_on(depth) { '│' } else { ' ' });
            rails.chain(corner.chars()).collect()
        }
        depth if room >= 3 => format!("·{}{corner}", depth.min(99)),
        _ => corner.to_owned(),
    }
}

pub(super) fn state(context: &Context<'_>, place: ChainPlace<'_>, room: u16) -> Cell {
    let Some((node, waiter)) = place.node.zip(place.waiter) else {
        return root_state(context, place.party, usize::from(room));
    };
    if place.row.is_run {
        return Cell::plain(rows_of_run(context, place));
    }
    let tag = place.tag(context);
    let what = tag.map_or_else(|| "?".to_owned(), |tag| context.wait_label(&tag, waiter.pid));
    let more = match node.unseen_blockers() {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    // A wait for the end of a transaction has only one mode.
    let is_transaction = |tag: LockTag| {
        matches!(tag.locktype(), LockType::TransactionId | LockType::VirtualXid | LockType::SafeSnapshot)
    };
    let is_mode_known = tag.is_some_and(is_transaction) || what.starts_with("row of ");
    let what = match tag.map(|tag| tag.locktype()) {
        // The row already shows the process id of the waiter.
        Some(LockType::SafeSnapshot) => "safe snapshot".to_owned(),
        _ => object_first(what),
    };
    let end = if is_mode_known { more } else { format!(" {}{more}", waiter.mode.short()) };
    let (cycle, tone) = match node.cycle {
        Some(_) if node.parent.is_none() => ("DEADLOCK ", Tone::Critical),
        Some(_) => ("", Tone::Critical),
        None => ("", Tone::Plain),
    };
    Cell::toned(fit_names(format!("{cycle}{what}{end}"), room), tone).with_dim_end(&end)
}

/// What the sessions of a run wait for: `8 rows of accounts`, if all rows are in one table.
fn rows_of_run(context: &Context<'_>, place: ChainPlace<'_>) -> String {
    let number = crate::text::count(place.row.folded.into());
    let awaited = |node: &TreeNode| {
        let (queue, _) = context.waiter_at(node)?;
        Some(contended(context.awaited(&queue.tag, node.party.pid())))
    };
    let mut tags = forest::run(&context.view.graph.tree, place.row.at as usize).map(awaited);
    let first = tags.next().flatten().filter(|tag| tag.locktype() == LockType::Tuple);
    match first.filter(|first| tags.all(|tag| tag == Some(*first))) {
        Some(rows) => {
            let table = rows.with_locktype(LockType::Relation);
            format!("{number} rows of {}", context.lock_label(&table, None))
        }
        None => format!("{number} locks"),
    }
}

pub(super) fn wait(context: &Context<'_>, place: ChainPlace<'_>) -> Option<f64> {
    context.wait_age(place.waiter?.wait_start)
}

/// A root is as urgent as the longest wait behind it.
pub(super) fn urgency(context: &Context<'_>, place: ChainPlace<'_>) -> SortValue<'static> {
    SortValue::number(match context.root(place.party) {
        Some(root) => context.wait_age(root.longest_wait),
        None => wait(context, place),
    })
}

pub(super) fn state_or_wait<'a>(context: &Context<'a>, place: ChainPlace<'a>) -> SortValue<'a> {
    match place.waiter {
        None => state_value(context, place.party),
        Some(_) => state(context, place, u16::MAX).into_value(),
    }
}

pub(super) fn blocks(context: &Context<'_>, place: ChainPlace<'_>) -> Cell {
    if place.is_group() {
        return Cell::toned(format!("×{}", crate::text::count(place.row.folded.into())), Tone::Dim);
    }
    let is_critical = || {
        let mut findings = context.view.findings.iter();
        findings.any(|finding| {
            finding.severity == Severity::Critical && finding.ended.is_none() && finding.is_about(place.party)
        })
    };
    let tone = match place.is_top() {
        true if is_critical() => Tone::Critical,
        true => Tone::Warning,
        false => Tone::Plain,
    };
    match context.blocked(place.party) {
        0 => Cell::default(),
        blocked => Cell::toned(crate::text::count(blocked.into()), tone),
    }
}

/// A number of the promise: empty if no session waits behind it, `?` if this role cannot see it.
pub(super) fn number(
    context: &Context<'_>,
    place: ChainPlace<'_>,
    of: fn(Promise) -> u32,
    tone: fn(Promise) -> Tone,
) -> Cell {
    match if place.is_group() { None } else { context.promise(place.party) } {
        None => Cell::default(),
        Some(promise) if promise.is_hidden => Cell::plain("?"),
        Some(promise) => Cell::toned(crate::text::count(of(promise).into()), tone(promise)),
    }
}

/// Good if all sessions continue at once, a warning if none does.
pub(super) fn now_tone(promise: Promise) -> Tone {
    match promise.now {
        now if now == promise.blocked => Tone::Good,
        0 if promise.in_turn == 0 => Tone::Warning,
        _ => Tone::Plain,
    }
}

pub(super) fn still_tone(promise: Promise) -> Tone {
    if promise.still + promise.unsure > 0 { Tone::Warning } else { Tone::Plain }
}

pub(super) fn sorted(
    context: &Context<'_>,
    place: ChainPlace<'_>,
    of: fn(Promise) -> u32,
) -> SortValue<'static> {
    let promise = if place.is_group() { None } else { context.promise_of_all(place.party) };
    SortValue::whole(promise.map(|promise| of(promise).into()))
}

pub(super) fn who(context: &Context<'_>, place: ChainPlace<'_>, room: u16) -> Cell {
    match place.party {
        _ if place.row.is_run => {
            Cell::plain(format!("{} sessions", crate::text::count(place.row.folded.into())))
        }
        _ if place.is_group() => Cell::plain(client_or_gid(context, place, room)),
        Party::Prepared(xact) => Cell::server(context.prepared(xact).and_then(|row| row.owner.as_deref())),
        Party::Backend(pid) => {
            let connecting =
                || if connects(context, place) { Cell::plain("connecting") } else { Cell::default() };
            context.backend(pid).map_or_else(connecting, |backend| backends::who(context, backend, room))
        }
    }
}

/// A new session appears in `pg_stat_activity` only after it has locked its database (`InitPostgres` in
/// `src/backend/utils/init/postinit.c`).
fn connects(context: &Context<'_>, place: ChainPlace<'_>) -> bool {
    let is_database = |tag: LockTag| tag.classid() == Some(words::DATABASE_CLASS) && tag.objid() != Some(0);
    place.waiter.is_some_and(|waiter| waiter.mode == LockMode::RowExclusive)
        && place.tag(context).is_some_and(|tag| tag.locktype() == LockType::Object && is_database(tag))
}

fn client_or_gid(context: &Context<'_>, place: ChainPlace<'_>, room: u16) -> String {
    let Some(node) = place.node else { return String::new() };
    // A queue has many sessions of few programs: only distinct names are formatted.
    let mut seen = FxHashSet::default();
    let sessions = forest::members(context, node).filter_map(|party| context.backend(party.pid()));
    let different = sessions.filter(|row| seen.insert((&row.application, &row.user, &row.client)));
    let mut names = different.map(|row| backends::who(context, row, room).text);
    let Some(first) = names.next() else { return String::new() };
    let others = names.filter(|name| *name != first).collect::<FxHashSet<_>>().len();
    if others == 0 { first } else { format!("{first} +{}", crate::text::count(others as u64)) }
}

pub(super) fn database<'a>(context: &Context<'a>, place: ChainPlace<'a>) -> Option<&'a str> {
    match place.party {
        Party::Prepared(xact) => context.prepared(xact)?.database.as_deref(),
        Party::Backend(pid) => context.backend(pid)?.database.as_deref(),
    }
}

/// The current or last statement; for a prepared transaction its gid.
pub(super) fn query(context: &Context<'_>, place: ChainPlace<'_>, room: u16) -> Cell {
    match place.party {
        _ if place.row.is_run => Cell::plain("Enter unfolds"),
        Party::Prepared(xact) => context.prepared(xact).map_or_else(Cell::default, |row| {
            Cell::plain(format!("gid {}", crate::text::one_line(&row.gid)))
        }),
        Party::Backend(pid) => {
            Cell::query(context.backend(pid).and_then(|backend| backend.query.as_ref()), room)
        }
    }
}
