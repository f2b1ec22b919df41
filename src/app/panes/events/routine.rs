//! The routine of a minute: the ordinary events of tasks and leases, in one line.

use crate::app::context::Context;
use crate::model::event::{Event, Kind};
use crate::text;

/// The number of events so far in the minute of the first event.
pub(super) fn count(context: &Context<'_>, first: u64) -> u32 {
    let events = &context.view.events;
    let Some(begin) = events.get(first) else { return 0 };
    let same =
        (first..).map_while(|number| events.get(number)).take_while(|event| event.is_same_routine(begin));
    u32::try_from(same.count()).unwrap_or(u32::MAX)
}

const WORDS: [(&str, &[(Kind, &str)]); 2] = [
    ("tasks", &[(Kind::TaskStarted, "started"), (Kind::TaskEnded, "ended")]),
    (
        "leases",
        &[
            (Kind::LeaseTaken, "taken"),
            (Kind::LeaseReleased, "released"),
            (Kind::LeaseChanged, "with another owner"),
        ],
    ),
];

/// `tasks: 61 started, 58 ended; leases: 4 taken, 2 with another owner`.
pub(super) fn what<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    let kinds: Vec<Kind> = events.map(|event| event.kind).collect();
    let counted = |(kind, words): &(Kind, &str)| {
        let count = kinds.iter().filter(|other| *other == kind).count() as u64;
        (count > 0).then(|| format!("{} {words}", text::count(count)))
    };
    let part = |(of, words): &(&str, &[(Kind, &str)])| {
        let list: Vec<String> = words.iter().filter_map(counted).collect();
        (!list.is_empty()).then(|| format!("{of}: {}", list.join(", ")))
    };
    WORDS.iter().filter_map(part).collect::<Vec<_>>().join("; ")
}
