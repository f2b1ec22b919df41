use crate::model::blame::{Ending, Episode, Key, Span};
use crate::model::output::{Channel, Mode, shown};
use crate::model::snapshot::Server;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::text::{count, duration, one_line_prefix};
use crate::wire::report::{Report, Setting};

/// Seconds after which an idle transaction that blocks others should be terminated.
const IDLE: f64 = 40.0;

/// The server's default `deadlock_timeout`, in seconds.
const USUAL: f64 = 1.0;

pub(super) fn settings(report: &Report, view: &View) -> Vec<Setting> {
    let mut found = Vec::new();
    let episodes = report.blame.episodes_in(Span::All);
    let idle = |episode: &&Episode| {
        episode.keys.iter().any(|key| &*key.doing == "idle in xact") && episode.length() > IDLE
    };
    if let Some(worst) = episodes.filter(idle).max_by(|a, b| a.sums.seconds.total_cmp(&b.sums.seconds)) {
        let limit = if worst.length() > 3.0 * IDLE { "1min" } else { "30s" };
        let advice = format!(
            "{} was idle in its transaction and blocked others for {}; with '{limit}' for its role the server would have terminated it",
            worst.pid,
            duration(worst.length()),
        );
        found.push(Setting { name: "idle_in_transaction_session_timeout", value: None, advice });
    }
    let Some(server) = view.snapshot.as_deref().and_then(|snapshot| snapshot.server()) else { return found };
    found.extend(deadlock_timeout(report, server));
    found.extend(log_lock_waits(report, server));
    if u64::from(server.connections) * 10 >= u64::from(server.max_connections) * 9 {
        let advice = format!(
            "{} were in use at the worst moment: waiting sessions occupy connections; a pooler or lock_timeout keeps some free",
            server.connections
        );
        let value = Some(server.max_connections.to_string());
        found.push(Setting { name: "max_connections", value, advice });
    }
    let statements = report.blame.table.episodes.iter().flat_map(|episode| &episode.ran);
    let kept = usize::try_from(server.query_size).unwrap_or(usize::MAX).saturating_sub(1);
    // locktop itself cuts statements at this length, so truncation by the server is detectable only below it.
    if kept > 0 && kept < 500 && statements.into_iter().any(|ran| ran.statement.len() >= kept) {
        found.push(Setting {
            name: "track_activity_query_size",
            value: Some(server.query_size.to_string()),
            advice: "statements were truncated by the server; a longer limit needs a restart".to_owned(),
        });
    }
    found
}

/// Advice if a statement that changes a table waited too long, whether or not it blocked others.
pub(super) fn lock_timeout(view: &View, pid: i32, mode: Mode) -> Option<Setting> {
    let (graph, snapshot) = (&view.graph, view.snapshot.as_deref()?);
    let party = Party::Backend(pid);
    let (queue, at) = graph.wait_of(party)?;
    let waiter = queue.waiters.get(at)?;
    let seconds = (snapshot.taken_at - waiter.wait_start?).as_seconds_f64();
    let below = graph.tree.nodes.iter().find(|node| node.party == party).map_or(0, |node| node.below);
    let query = view.index.backend(snapshot, pid).and_then(|backend| backend.query.as_ref());
    let query = query.map(|query| shown(Channel::Report(mode), query)).unwrap_or_default();
    let helped = match below {
        0 => "with '2s' and a retry it would not have blocked later requests for that long".to_owned(),
        1 => "and 1 session behind it; with '2s' and a retry that would not have waited behind it".to_owned(),
        many => format!("and {many} behind it; with '2s' and a retry they would not have waited behind it"),
    };
    let advice = format!(
        "{pid} waited at least {} for {} ({}), so it had no shorter lock_timeout, {helped}",
        duration(seconds),
        waiter.mode.short(),
        one_line_prefix(&query, 80),
    );
    Some(Setting { name: "lock_timeout", value: None, advice })
}

/// The server resolves deadlocks, and cancels a blocking autovacuum, only after this timeout.
fn deadlock_timeout(report: &Report, server: &Server) -> Option<Setting> {
    let timeout = server.deadlock_timeout.filter(|timeout| *timeout > USUAL)?;
    let episodes = || report.blame.episodes_in(Span::All).filter(|episode| episode.length() > USUAL);
    let is_circle = |episode: &Episode| {
        episode.ending == Ending::Deadlock
            || episode.keys.iter().any(|key| &*key.doing == "sessions that wait for each other")
    };
    // An autovacuum to prevent wraparound is not canceled.
    let is_vacuum = |episode: &Episode| {
        let vacuums = |key: &Key| {
            &*key.doing == "autovacuum worker" && !key.statement.contains("to prevent wraparound")
        };
        episode.keys.iter().any(|key| vacuums(key))
    };
    let what = if episodes().any(is_circle) {
        "sessions waited for each other longer than necessary: with '1s' the server would have broken the deadlock earlier"
    } else if episodes().any(is_vacuum) {
        "autovacuum is canceled only after that time: with '1s' it would have been earlier"
    } else {
        return None;
    };
    Some(Setting { name: "deadlock_timeout", value: Some(duration(timeout)), advice: what.to_owned() })
}

/// The server log would contain all waits, while snapshots see only some.
fn log_lock_waits(report: &Report, server: &Server) -> Option<Setting> {
    if server.log_lock_waits != Some(false) {
        return None;
    }
    let timeout = server.deadlock_timeout.unwrap_or(USUAL);
    let waits = report.blame.total(Span::All).waits;
    let is_long = |episode: &Episode| episode.length() > timeout;
    if !report.blame.episodes_in(Span::All).any(is_long) {
        return None;
    }
    let advice = format!(
        "{} waits were seen; with 'on' the server's log has each that is longer than deadlock_timeout ({}), with its statement and the holder of the lock",
        count(waits),
        duration(timeout)
    );
    Some(Setting { name: "log_lock_waits", value: Some("off".to_owned()), advice })
}
