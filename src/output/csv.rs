//! Snapshots as CSV for a spreadsheet (RFC 4180), one line per snapshot.

use std::borrow::Cow;
use std::fmt::Write;

use crate::model::finding::Severity;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::words;
use crate::text::one_line;

/// The header line, without the line end.
pub const HEAD: &str = "taken_at,waiting,longest_wait,roots,worst_root,worst_root_who,worst_root_state,blocked,frees,prepared,cycles,critical,warnings,finding,in_turn,still_blocked";

/// The line of a snapshot, without the line end; `None` without a snapshot. Values that could not be read are empty.
pub fn snapshot(view: &View) -> Option<String> {
    let snapshot = view.snapshot.as_deref()?;
    let has_locks = snapshot.locks.is_known();
    let graph = Some(&view.graph).filter(|_| has_locks);
    let worst = graph.and_then(|_| view.blocking_roots().next());
    let longest = graph.and_then(|_| view.longest_waiter()?.wait_start);
    let backend = worst.and_then(|root| match root.party {
        Party::Backend(pid) => view.index.backend(snapshot, pid),
        Party::Prepared(_) => None,
    });
    let count =
        |severity: Severity| view.findings.iter().filter(|finding| finding.severity == severity).count();
    let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let prepared = snapshot.prepared.is_known().then(|| snapshot.prepared.last_rows().len().to_string());
    let mut line = snapshot.taken_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, false);
    let seconds =
        longest.map(|since| format!("{:.1}", (snapshot.taken_at - since).as_seconds_f64().max(0.0)));
    for cell in [
        number(graph.map(|graph| graph.waiting)),
        seconds.unwrap_or_default(),
        graph.map(|_| view.blocking_roots().count().to_string()).unwrap_or_default(),
        worst.map(|root| root.party.pid().to_string()).unwrap_or_default(),
        backend.map(words::who).unwrap_or_default(),
        backend.and_then(|backend| backend.state).map(|state| state.as_str().to_owned()).unwrap_or_default(),
        number(worst.map(|root| root.blocked)),
        number(worst.map(|root| root.frees)),
        prepared.unwrap_or_default(),
        graph.map(|graph| graph.cycles.len().to_string()).unwrap_or_default(),
        count(Severity::Critical).to_string(),
        count(Severity::Warning).to_string(),
        view.findings.first().map(|finding| finding.summary.to_string()).unwrap_or_default(),
        number(worst.map(|root| root.in_turn)),
        number(worst.map(|root| root.still_blocked)),
    ] {
        // Writing to a string cannot fail.
        let _ = write!(line, ",{}", escaped(&cell));
    }
    Some(line)
}

/// A cell, quoted if necessary. Text that a spreadsheet would read as a formula gets a leading apostrophe.
fn escaped(cell: &str) -> Cow<'_, str> {
    let text = one_line(cell);
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    if !is_formula && !text.contains([',', '"', '\'']) {
        return Cow::Owned(text.into_owned());
    }
    Cow::Owned(format!("\"{}{}\"", if is_formula { "'" } else { "" }, text.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backend::State;
    use crate::model::lock::LockMode;
    use crate::sample::{self, Builder, advisory};

    #[test]
    fn a_snapshot_is_one_line() {
        let line = snapshot(&sample::incident(0.0).view()).unwrap();
        assert_eq!(
            line,
            "2026-11-20T14:02:31.000+00:00,20,171.0,3,4312,app@web-3,idle in transaction,17,1,1,0,3,0,\"4312 idle in transaction 3m12s, blocks 17: 1 continues now, 16 in turn\",16,0"
        );
        let (front, rest) = line.split_once('"').unwrap();
        let behind = rest.split_once('"').unwrap().1;
        assert_eq!(format!("{front}{behind}").matches(',').count(), HEAD.matches(',').count());
        let quiet = snapshot(&Builder::default().view()).unwrap();
        assert_eq!(quiet, "2026-11-20T14:02:31.000+00:00,0,,0,,,,,,0,0,0,0,,,");
    }

    #[test]
    fn no_name_is_a_formula_or_another_line() {
        let mut b = Builder::default();
        b.session(1, "=cmd|' /C calc'!A0@x\"\n\u{1b}[31m", State::Active, 5.0, "");
        b.lock(1, advisory(1), LockMode::Exclusive, None);
        b.session(2, "y", State::Active, 5.0, "");
        b.lock(2, advisory(1), LockMode::Exclusive, Some(5.0));
        let line = snapshot(&b.view()).unwrap();
        assert!(line.contains(",\"'=cmd|' /C calc'!A0@x\"\""), "{line}");
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
    }
}
