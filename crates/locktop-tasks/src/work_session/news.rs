use std::time::Duration;

use super::source::{QUIET, Source};
use super::types::Types;

/// A notification that concerns a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum News {
    /// There may be work to take, or the time of the next work has changed.
    Due(Source),
    /// Another worker found nothing left to take, with the time until the next poll; `None` if nothing is planned.
    Quiet(Source, Option<Duration>),
    /// The same notification from this session, at its place among those of other sessions.
    Told(Source),
}

impl News {
    /// Reads a notification. `None` unless it concerns this schema and, if it is about types, exactly these types. `own`
    /// marks a notification from this session.
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
        // Any role may notify: a value that is not a duration is ignored.
        let told = match seconds {
            "-" => None,
            seconds => Some(Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?),
        };
        Some(if own { Self::Told(source) } else { Self::Quiet(source, told) })
    }

    /// The most that a notification on this channel can mean.
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
