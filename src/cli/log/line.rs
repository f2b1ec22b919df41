//! Formats events as lines: `2026-11-23T14:02:31.123Z WARN feed::journal: a poll failed after 3.1 ms: …`.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::file::Sink;
use super::redact::harmless;
use crate::clock;

pub(super) struct Lines {
    level: LevelFilter,
    sink: Sink,
}

impl Lines {
    pub(super) fn new(level: LevelFilter, sink: Sink) -> Self {
        Self { level, sink }
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with("locktop")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let at = clock::wall().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let metadata = event.metadata();
        let place = metadata.target().strip_prefix("locktop::").unwrap_or(metadata.target());
        self.sink.write(format!("{at} {:<5} {place}: {}", metadata.level(), harmless(&text.0)));
    }

    // locktop uses no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
