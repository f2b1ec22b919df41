//! What a worker is told unasked.

use std::time::Duration;

use super::source::{QUIET, Source};
use super::types::Types;

/// What a worker is told unasked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum News {
    /// There is something to take, or the time when there will be has changed.
    Due(Source),
    /// Another worker found nothing left to take; what it said about when to look again, nothing when nothing is planned.
    Quiet(Source, Option<Duration>),
    /// This very session said so, at this place among what others said.
    Told(Source),
}

impl News {
    /// What a notification says, if it is about this schema, and where it is told of certain types about these; `own` when it is this
    /// session's.
    pub(super) fn read(channel: &str, payload: &str, schema: &str, types: &Types, own: bool) -> Option<Self> {
        if let Some(due) = Self::of_channel(channel) {
            return (payload == schema).then_some(due);
        }
        if channel != QUIET {
            return None;
        }
        let (seconds, rest) = payload.split_once(' ')?;
        let (source, rest) = rest.split_once(' ')?;
        let (key, of) = rest.split_once(' ')?;
        let source = Source::ALL.into_iter().find(|known| known.name() == source)?;
        (key == types.key() && of == schema).then_some(())?;
        // Anybody may notify: what is no duration is no news.
        let told = match seconds {
            "-" => None,
            seconds => Some(Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?),
        };
        Some(if own { Self::Told(source) } else { Self::Quiet(source, told) })
    }

    /// What any notification of a channel may say at most.
    pub(super) fn of_channel(channel: &str) -> Option<Self> {
        Source::ALL.into_iter().find(|source| source.channel() == channel).map(Self::Due)
    }

    /// The source that it is about.
    #[must_use]
    pub fn source(self) -> Source {
        match self {
            Self::Due(source) | Self::Quiet(source, _) | Self::Told(source) => source,
        }
    }
}
