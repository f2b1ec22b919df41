//! What changed: each event is one occurrence, in one printable line.
//!
//! The feed creates events from every snapshot, also from those that are never drawn; other parts report theirs (an action
//! and its result). [`Events`] keeps the newest of them.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::finding::{Severity, Subject};
use crate::model::{Text, Timestamp};

/// Up to this many similar events are shown individually.
pub const FEW: usize = 3;

/// How long something lasted, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// Exact: the server reports both ends.
    Exactly(f64),
    /// Upper bound: it ended some time before the poll.
    AtMost(f64),
    /// Lower bound: it may have begun before it was seen.
    AtLeast(f64),
}

impl Length {
    pub fn seconds(self) -> f64 {
        match self {
            Self::Exactly(seconds) | Self::AtMost(seconds) | Self::AtLeast(seconds) => seconds,
        }
    }
}

/// `2m51s`, `≤ 1.2s`, `≥ 41s`.
impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Exactly(_) => "",
            Self::AtMost(_) => "≤ ",
            Self::AtLeast(_) => "≥ ",
        })?;
        f.write_str(&crate::text::duration(self.seconds()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct EventBody {
    /// When it happened, by the server's clock: as reported by the server, otherwise when it was seen.
    pub at: Timestamp,
    pub kind: EventKind,
    pub severity: Severity,
    /// The actor or subject, `4466 app@web-3`; empty if `what` is a full sentence.
    pub who: Text,
    /// What happened, in the past tense: `began to wait for AccessShare on accounts behind 4312`. Events with the same text
    /// are shown as one line, `17 sessions began to wait …`.
    pub what: Text,
    /// The part that differs for each event: `: blocks 17`, `on worker-7`; often empty.
    pub more: Text,
    pub subject: Option<Subject>,
    pub length: Option<Length>,
}

impl EventBody {
    /// An event that is a full sentence. All text is made printable.
    pub fn new(at: Timestamp, kind: EventKind, severity: Severity, what: impl AsRef<str>) -> Self {
        let empty: Text = "".into();
        Self {
            at,
            kind,
            severity,
            who: Text::clone(&empty),
            what: harmless(what.as_ref()),
            more: empty,
            subject: None,
            length: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub number: u64,
    /// The time of the snapshot in which it was seen; for a reported event the time of the report. Events of one snapshot have
    /// the same time.
    pub seen: Timestamp,
    pub body: EventBody,
}

impl std::ops::Deref for Event {
    type Target = EventBody;

    fn deref(&self) -> &EventBody {
        &self.body
    }
}

impl Event {
    pub fn text(&self) -> String {
        let before = if self.who.is_empty() { "" } else { " " };
        let is_word = !self.more.is_empty() && !self.more.starts_with([',', ':', ';']);
        let behind = if is_word { " " } else { "" };
        format!("{}{before}{}{behind}{}", self.who, self.what, self.more)
    }

    pub fn is_alike(&self, other: &Self) -> bool {
        !self.who.is_empty()
            && !other.who.is_empty()
            && self.kind == other.kind
            && self.seen == other.seen
            && self.severity == other.severity
            && self.what == other.what
    }

    pub fn is_routine(&self) -> bool {
        use EventKind::{LeaseChanged, LeaseReleased, LeaseTaken, TaskEnded, TaskStarted};
        self.severity == Severity::Info
            && matches!(self.kind, TaskStarted | TaskEnded | LeaseTaken | LeaseReleased | LeaseChanged)
    }

    /// Whether both are routine and of the same minute: these are one line even if they are not similar.
    pub fn is_same_routine(&self, other: &Self) -> bool {
        let minute = |event: &Self| event.seen.timestamp().div_euclid(60);
        self.is_routine() && other.is_routine() && minute(self) == minute(other)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExternalEvent {
    pub kind: EventKind,
    pub severity: Severity,
    /// One line; it may contain text of the server, and is made printable.
    pub text: String,
    pub subject: Option<Subject>,
}

/// Converts the text for one subject to that for several: `was taken`, `were taken`.
pub fn plural(what: &str) -> std::borrow::Cow<'_, str> {
    match what.strip_prefix("was ") {
        Some(rest) => format!("were {rest}").into(),
        None => what.into(),
    }
}

pub fn harmless(text: &str) -> Text {
    Text::from(crate::text::one_line_prefix(text, 500))
}

/// Each kind with its word for a column and for the filter (`kind:wait` finds both ends of a wait), and what several are called.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal of $noun:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            pub const fn noun(self) -> &'static str {
                match self { $(Self::$kind => $noun,)* }
            }
        }
    };
}

kinds! {
    WaitBegun = "wait" of "sessions",
    /// A session no longer waits: it has the lock, or has disconnected, or neither is known.
    WaitEnded = "wait over" of "sessions",
    /// A session or prepared transaction that does not wait began to block others.
    RootBegun = "root" of "roots",
    /// It no longer blocks any session, or waits itself.
    RootEnded = "root over" of "roots",
    CycleBegun = "cycle" of "cycles",
    CycleEnded = "cycle over" of "cycles",
    Deadlock = "deadlock" of "cycles",
    TaskStarted = "task start" of "tasks",
    TaskSlow = "task slow" of "tasks",
    /// The session of an execution that is running according to the log has ended.
    TaskOrphaned = "task orphan" of "tasks",
    TaskEnded = "task end" of "tasks",
    /// An execution was closed for a worker that had disconnected.
    TaskRecovered = "task recover" of "tasks",
    TaskOverdue = "task overdue" of "tasks",
    /// A task's key is held, but nothing runs.
    TaskLeaked = "task leak" of "tasks",
    TaskSwitched = "task switch" of "tasks",
    /// A free lease was acquired, or an expired one was renewed.
    LeaseTaken = "lease" of "leases",
    /// A lease ended without being released.
    LeaseExpired = "lease expired" of "leases",
    /// A lease was released, or its row no longer exists.
    LeaseReleased = "lease over" of "leases",
    LeaseChanged = "lease owner" of "leases",
    ItemFailed = "item failed" of "queue items",
    ItemLost = "item lost" of "queue items",
    /// The connection was lost, or the server does not answer.
    LinkLost = "link lost" of "events",
    LinkBack = "link" of "events",
    /// The server was restarted, was promoted, or became a standby.
    Server = "server" of "events",
    SectionStale = "stale" of "sections",
    SectionFresh = "fresh" of "sections",
    /// The operator requested an action, and it was recorded.
    ActionAsked = "action" of "events",
    ActionResult = "action result" of "events",
    Note = "note" of "events",
}

impl EventKind {
    pub const fn is_action(self) -> bool {
        matches!(self, Self::ActionAsked | Self::ActionResult | Self::Note)
    }

    /// Whether it reports an end: the subject was visible in the previous poll.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::WaitEnded | Self::RootEnded | Self::CycleEnded | Self::ActionResult)
    }
}

/// Events in a chunk. Adding events copies at most the last chunk.
const PIECE: usize = 256;

/// Chunks kept: about 20,000 events.
const PIECES: usize = 80;

const LARGEST: u64 = u64::MAX / 2;

/// The newest events. A clone shares all chunks.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// All full except the last, oldest first.
    pieces: Vec<Arc<Vec<Event>>>,
    dropped: u64,
}

impl Events {
    pub fn len(&self) -> usize {
        let last = self.pieces.last().map_or(0, |piece| piece.len());
        self.pieces.len().saturating_sub(1) * PIECE + last
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number after that of the last event.
    pub fn end(&self) -> u64 {
        self.dropped + self.len() as u64
    }

    pub fn get(&self, number: u64) -> Option<&Event> {
        let place = usize::try_from(number.checked_sub(self.dropped)?).ok()?;
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Adds a recorded event, with its number. If events before it are missing, it becomes the first one.
    pub fn append(&mut self, event: Event) {
        // No log is that long: the number is invalid, and numbers after it would overflow.
        if event.number > LARGEST {
            return;
        }
        if event.number != self.end() {
            *self = Self { pieces: Vec::new(), dropped: event.number };
        }
        self.push(event);
        self.make_room();
    }

    /// The events `from..end`, as far as one of these logs has them. Logs share their common chunks.
    pub fn part(logs: &VecDeque<Arc<Self>>, from: u64, end: u64) -> Self {
        let size = PIECE as u64;
        let mut part = Self { pieces: Vec::new(), dropped: from };
        for place in from / size..end.div_ceil(size) {
            let wanted = usize::try_from(end - place * size).unwrap_or(usize::MAX).min(PIECE);
            let mut pieces = logs.iter().filter_map(|log| {
                let at = usize::try_from(place.checked_sub(log.dropped / size)?).ok()?;
                log.pieces.get(at).filter(|piece| piece.len() >= wanted)
            });
            match pieces.next() {
                Some(piece) if piece.len() == wanted => part.pieces.push(Arc::clone(piece)),
                Some(piece) => part.pieces.push(Arc::new(piece.get(..wanted).unwrap_or_default().to_vec())),
                // Without it the earlier ones are useless too.
                None => part = Self { pieces: Vec::new(), dropped: (place + 1) * size },
            }
        }
        part
    }

    pub fn extend(&mut self, seen: Timestamp, bodies: impl IntoIterator<Item = EventBody>) {
        let first = self.dropped + self.len() as u64;
        for (number, body) in (first..).zip(bodies) {
            self.push(Event { number, seen, body });
        }
        self.make_room();
    }

    fn push(&mut self, event: Event) {
        if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE) {
            self.pieces.push(Arc::new(Vec::with_capacity(PIECE)));
        }
        if let Some(last) = self.pieces.last_mut() {
            Arc::make_mut(last).push(event);
        }
    }

    fn make_room(&mut self) {
        let most = self.pieces.len().saturating_sub(PIECES);
        self.dropped += (most * PIECE) as u64;
        self.pieces.drain(..most);
    }
}
