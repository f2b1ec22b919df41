//! What changed: each event is one occurrence, in one printable line.
//!
//! The feed creates events from every snapshot, also from those that are never drawn; other parts report theirs (an action
//! and its result). [`Events`] keeps the newest of them.

mod kind;
mod log;
#[cfg(test)]
mod tests;

pub use kind::Kind;
pub use log::Events;

use super::finding::{Severity, Subject};
use super::{Text, Timestamp};

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
pub struct Draft {
    /// When it happened, by the server's clock: as reported by the server, otherwise when it was seen.
    pub at: Timestamp,
    pub kind: Kind,
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

impl Draft {
    /// An event that is a full sentence. All text is made printable.
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

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub number: u64,
    /// The time of the snapshot in which it was seen; for a reported event the time of the report. Events of one snapshot have
    /// the same time.
    pub seen: Timestamp,
    pub draft: Draft,
}

impl std::ops::Deref for Event {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
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
        use Kind::{LeaseChanged, LeaseReleased, LeaseTaken, TaskEnded, TaskStarted};
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
pub struct Told {
    pub kind: Kind,
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
