//! Redaction of recorded statements.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::names::Salt;
use crate::model::backend::Backend;
use crate::model::blame::{Blame, BlameKey, EpisodeStatement};
use crate::model::disclosure::{Channel, Mode, kept as left, without_literals};
use crate::model::event::{Event, EventKind, Events};
use crate::model::past::{CarriedState, KeptObservation, Observation};
use crate::model::snapshot::Snapshot;
use crate::model::statement::redacted::speaks_of_secret;
use crate::model::view::View;
use crate::model::{QueryText, Text};

/// The statements of the last snapshot and their redacted text, by address.
#[derive(Debug, Default)]
pub struct RedactedTexts(FxHashMap<usize, (Text, Text)>);

/// The parts to remove. In every mode, literals are removed from statements about passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redaction {
    /// Only the literals of statements about passwords.
    #[default]
    None,
    /// Strings, numbers and comments.
    Literals,
    /// Whole statements, replaced by a number that is equal for statements that differ only in literals.
    Queries,
    /// All names and statements, replaced by hashes; the form of a statement stays.
    Names(Salt),
}

impl Redaction {
    pub fn of(mode: Mode) -> std::io::Result<Self> {
        Ok(match mode {
            Mode::None => Self::None,
            Mode::Literals => Self::Literals,
            Mode::Queries => Self::Queries,
            Mode::Names => Self::Names(Salt::random()?),
        })
    }

    pub fn as_str(self) -> &'static str {
        self.mode().into()
    }

    pub const fn mode(self) -> Mode {
        match self {
            Self::None => Mode::None,
            Self::Literals => Mode::Literals,
            Self::Queries => Mode::Queries,
            Self::Names(_) => Mode::Names,
        }
    }

    pub const fn hides_names(self) -> bool {
        matches!(self, Self::Names(_))
    }

    /// Redacts a snapshot, and with it everything derived from it.
    pub fn apply(self, snapshot: &mut Snapshot) {
        if let Self::Names(salt) = self {
            salt.apply(snapshot);
            return;
        }
        self.apply_to_queries(snapshot.backends.rows_mut());
    }

    pub fn apply_live(self, snapshot: &mut Snapshot, known: &mut RedactedTexts) {
        if self.hides_names() {
            return self.apply(snapshot);
        }
        let mut now = RedactedTexts::default();
        for query in snapshot.backends.last_rows().iter().filter_map(|row| row.query.as_ref()) {
            let text = query.unredacted();
            now.0.entry(place(text)).or_insert_with(|| {
                let before = known.0.get(&place(text)).map(|(_, left)| Text::clone(left));
                (Text::clone(text), before.unwrap_or_else(|| self.redacted(text)))
            });
        }
        if now.0.values().any(|(text, left)| !Arc::ptr_eq(text, left)) {
            for query in
                Arc::make_mut(snapshot.backends.rows_mut()).iter_mut().filter_map(|row| row.query.as_mut())
            {
                if let Some((_, left)) = now.0.get(&place(query.unredacted())) {
                    *query = QueryText::from(Text::clone(left));
                }
            }
        }
        *known = now;
    }

    fn apply_to_queries(self, backends: &mut Arc<Vec<Backend>>) {
        let has_any = |backend: &Backend| {
            backend.query.as_ref().is_some_and(|query| self.takes_from(query.unredacted()))
        };
        if !backends.iter().any(has_any) {
            return;
        }
        for query in Arc::make_mut(backends).iter_mut().filter_map(|backend| backend.query.as_mut()) {
            *query = QueryText::from(self.redacted(query.unredacted()));
        }
    }

    /// Redacts a stored snapshot. In events made from statements, all text that can be part of one is removed.
    pub fn apply_to_recorded(self, kept: &mut KeptObservation) {
        if let Self::Names(salt) = self {
            salt.apply_to_recorded(kept);
            return;
        }
        self.apply(&mut kept.snapshot);
        // The sessions of the wait graph, if the locks of this snapshot could not be read.
        if let Some(graph) = &mut kept.past.graph_from {
            self.apply_to_queries(&mut graph.backends);
        }
        self.apply_to_deadlocks(kept);
        if self == Self::None {
            let speaks = |ran: &[EpisodeStatement]| ran.iter().any(|ran| speaks_of_secret(&ran.statement));
            let has_any = |blame: &&Blame| {
                speaks(&blame.last.ran) || blame.table.episodes.iter().any(|episode| speaks(&episode.ran))
            };
            if let Some(blame) = kept.blame.as_deref().filter(has_any) {
                let without = blame.with_statements(BlameKey::clone, |statement| self.redacted(statement));
                kept.blame = Some(Arc::new(without));
            }
            return;
        }
        kept.blame = kept.blame.as_deref().map(|blame| Arc::new(self.apply_to_blame(blame)));
    }

    /// Descriptions of deadlock parties, and their events, contain statements.
    fn apply_to_deadlocks(self, kept: &mut KeptObservation) {
        let said = |said: &mut Vec<Text>| {
            for text in said.iter_mut().filter(|text| self.takes_from(text)) {
                *text = before_statement(text);
            }
        };
        kept.past.deadlocks.cycles.iter_mut().for_each(|cycle| said(&mut cycle.texts));
        let broken = kept.past.deadlocks.broken.iter_mut();
        broken.filter_map(|broken| broken.victims.as_mut()).for_each(|victims| said(&mut victims.texts));
        if kept.events.iter().any(|event| self.takes_from_event(event)) {
            let mut events = Events::default();
            for event in kept.events.iter() {
                events.append(self.event(event.clone()));
            }
            kept.events = Arc::new(events);
        }
    }

    fn takes_from(self, text: &str) -> bool {
        self != Self::None || speaks_of_secret(text)
    }

    fn takes_from_event(self, event: &Event) -> bool {
        event.kind == EventKind::Deadlock && self.takes_from(&event.what)
    }

    pub(in crate::feed) fn event(self, mut event: Event) -> Event {
        if self.takes_from_event(&event) {
            event.body.what = before_statement(&event.what);
        }
        event
    }

    /// The statements have no literals already, but a tag is text from a comment, so tags are removed.
    pub(in crate::feed) fn apply_to_blame(self, blame: &Blame) -> Blame {
        blame.with_statements(
            |key| BlameKey {
                statement: if key.statement.is_empty() {
                    Text::default()
                } else {
                    self.redacted(&key.statement)
                },
                tag: Text::default(),
                ..key.clone()
            },
            |statement| self.redacted(statement),
        )
    }

    pub(in crate::feed) fn redacted(self, query: &Text) -> Text {
        left(Channel::Recording(self.mode()), query)
    }
}

/// The address of a text. It is unique while the text is kept alive.
fn place(text: &Text) -> usize {
    text.as_ptr() as usize
}

/// `4410 deploy@ci waited for Share on accounts: ALTER TABLE …` without the statement.
fn before_statement(text: &str) -> Text {
    without_literals(text.split_once(": ").map_or(text, |(before, _)| before)).into()
}

/// Cuts each statement to `most` characters. Also returns how many statements of sessions were cut.
pub(super) fn cut(observation: &Observation, most: usize) -> (Observation, u64) {
    let mut view = View::clone(&observation.view);
    let mut past = CarriedState::clone(&observation.past);
    let mut count = 0;
    if let Some(snapshot) = observation.view.snapshot.as_deref() {
        let mut snapshot = Snapshot::clone(snapshot);
        count = cut_all(snapshot.backends.rows_mut(), most);
        view.snapshot = Some(Arc::new(snapshot));
    }
    if let Some(graph) = &mut past.graph_from {
        cut_all(&mut graph.backends, most);
    }
    let shorter = |text: &Text| shortened(text, most).unwrap_or_else(|| Text::clone(text));
    let key = |key: &BlameKey| BlameKey { statement: shorter(&key.statement), ..key.clone() };
    view.blame = Arc::new(view.blame.with_statements(key, shorter));
    (Observation { view: Arc::new(view), past: Arc::new(past), notes: Arc::clone(&observation.notes) }, count)
}

fn cut_all(backends: &mut Arc<Vec<Backend>>, most: usize) -> u64 {
    let mut count = 0;
    for query in Arc::make_mut(backends).iter_mut().filter_map(|backend| backend.query.as_mut()) {
        if let Some(shorter) = shortened(query.unredacted(), most) {
            *query = QueryText::from(shorter);
            count += 1;
        }
    }
    count
}

/// `None` if it is short enough. The cut text is marked.
fn shortened(text: &str, most: usize) -> Option<Text> {
    let (end, _) = text.char_indices().nth(most)?;
    let rest = crate::text::count((text.len() - end) as u64);
    Some(format!("{} … (cut: {rest} bytes more)", text.get(..end)?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any statement. `tests/offline/statements.rs` covers the other channels.
    #[test]
    fn no_recording_has_a_password_and_with_a_mode_none_has_a_literal() {
        let shapes: toml::Table = include_str!("../../../tests/statements.toml").parse().unwrap();
        let modes = [
            Redaction::None,
            Redaction::Literals,
            Redaction::Queries,
            Redaction::Names(Salt::random().unwrap()),
        ];
        for (kind, statements) in &shapes {
            for statement in statements.as_array().unwrap() {
                let statement = statement.as_str().or_else(|| statement[0].as_str()).unwrap();
                for mode in modes {
                    if mode == Redaction::None && kind != "passwords" {
                        continue;
                    }
                    let mut snapshot = crate::sample::incident(0.0).snapshot();
                    for backend in Arc::make_mut(snapshot.backends.rows_mut()) {
                        backend.query = Some(statement.into());
                    }
                    mode.apply(&mut snapshot);
                    for query in
                        snapshot.backends.last_rows().iter().filter_map(|backend| backend.query.as_ref())
                    {
                        assert!(!query.unredacted().contains("s3c"), "{mode:?}: {}", query.unredacted());
                    }
                }
            }
        }
    }

    #[test]
    fn redacting_a_text_twice_changes_nothing() {
        let other: Text = "SELECT 's3cret'".into();
        assert!(Arc::ptr_eq(&Redaction::None.redacted(&other), &other));
        let number = Redaction::Queries.redacted(&other);
        assert_eq!(number, Redaction::Queries.redacted(&"SELECT 'x'".into()));
        assert_eq!(Redaction::Queries.redacted(&number), number);
    }
}
