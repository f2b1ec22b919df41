//! What changed: each event is one thing that happened, in one harmless line.
//!
//! The feed makes them from every snapshot, also from those that are never drawn; others tell theirs (an action and what
//! came of it). [`Events`] keeps the newest of them.

mod kind;
mod log;
#[cfg(test)]
mod tests;

pub use kind::Kind;
pub use log::Events;

use super::finding::{Severity, Subject};
use super::{Text, Timestamp};

/// So many events that are alike are still shown one by one.
pub const FEW: usize = 3;

/// How long something lasted, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// This long: the server says both ends.
    Exactly(f64),
    /// Not longer: it was over some time before it was looked for.
    AtMost(f64),
    /// Not shorter: it may have begun before it was seen.
    AtLeast(f64),
}

impl Length {
    /// The seconds, whichever way they may be off.
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

/// What happened, before it has its place among the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// When it happened, by the server's clock: as the server says where it does, else when it was seen.
    pub at: Timestamp,
    /// What it is about, for the column and the filter.
    pub kind: Kind,
    /// How much it matters: by it the screen colours the event.
    pub severity: Severity,
    /// Who did it or what it happened to, `4466 app@web-3`; empty where the rest is a sentence of its own.
    pub who: Text,
    /// What happened, in the past: `began to wait for AccessShare on accounts behind 4312`. Events that have this in common
    /// are shown as one line, `17 sessions began to wait …`.
    pub what: Text,
    /// What is different for each: `: blocks 17`, `on worker-7`; often empty.
    pub more: Text,
    /// The row it is about.
    pub subject: Option<Subject>,
    /// How long that lasted which has ended.
    pub length: Option<Length>,
}

impl Draft {
    /// A sentence of its own. All text is made fit for a screen.
    pub fn new(at: Timestamp, kind: Kind, severity: Severity, what: impl AsRef<str>) -> Self {
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

/// Something that happened, with its place among the events.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its identity: it grows by one from event to event.
    pub number: u64,
    /// The snapshot in which it was seen, by that one's time; for what was told the time of the telling. Events of one
    /// snapshot have the same.
    pub seen: Timestamp,
    /// What happened, when, and to whom.
    pub draft: Draft,
}

impl std::ops::Deref for Event {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl Event {
    /// The whole line: `4466 app@web-3 began to wait for AccessShare on accounts behind 4312`.
    pub fn text(&self) -> String {
        let before = if self.who.is_empty() { "" } else { " " };
        let is_word = !self.more.is_empty() && !self.more.starts_with([',', ':', ';']);
        let behind = if is_word { " " } else { "" };
        format!("{}{before}{}{behind}{}", self.who, self.what, self.more)
    }

    /// Whether both are shown as one line: alike, and seen in the same snapshot.
    pub fn is_alike(&self, other: &Self) -> bool {
        !self.who.is_empty()
            && !other.who.is_empty()
            && self.kind == other.kind
            && self.seen == other.seen
            && self.severity == other.severity
            && self.what == other.what
    }

    /// Whether it is what tasks and leases do all day, a start, a regular end, another owner: nothing that anybody looks for.
    pub fn is_routine(&self) -> bool {
        use Kind::{LeaseChanged, LeaseReleased, LeaseTaken, TaskEnded, TaskStarted};
        self.severity == Severity::Info
            && matches!(self.kind, TaskStarted | TaskEnded | LeaseTaken | LeaseReleased | LeaseChanged)
    }

    /// Whether both are routine and of the same minute, and so one line also where they are not alike.
    pub fn is_same_routine(&self, other: &Self) -> bool {
        let minute = |event: &Self| event.seen.timestamp().div_euclid(60);
        self.is_routine() && other.is_routine() && minute(self) == minute(other)
    }
}

/// An event that somebody else than the feed knows of.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What it is about, for the column and the filter.
    pub kind: Kind,
    /// How much it matters: by it the screen colours the event.
    pub severity: Severity,
    /// One line; it may have the server's text in it, and is made fit for a screen.
    pub text: String,
    /// The row it is about; none where it is about no row.
    pub subject: Option<Subject>,
}

/// What happened to one, said of several: `was taken`, `were taken`.
pub fn plural(what: &str) -> std::borrow::Cow<'_, str> {
    match what.strip_prefix("was ") {
        Some(rest) => format!("were {rest}").into(),
        None => what.into(),
    }
}

/// Text as one line that no screen is harmed by, and not longer than anybody reads.
pub fn harmless(text: &str) -> Text {
    Text::from(crate::text::one_line_prefix(text, 500))
}
