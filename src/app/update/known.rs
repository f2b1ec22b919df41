use crate::app::App;
use crate::app::message::{Effect, Update};
use crate::model::plan::{Known, Verb};

impl App {
    /// Applies a confirmed change from the next poll on, which it requests at once.
    pub(super) fn expect(&mut self, known: &Known) -> Update {
        self.expected = known.applied(&self.expected).into();
        let name = known.name();
        let text = match known.verb() {
            Verb::ExpectNoMore => format!("{name} is no longer expected"),
            _ => format!("{name} is expected now"),
        };
        self.say(format!("{text}, in this run"));
        let expected = std::sync::Arc::clone(&self.expected);
        let effects = vec![Effect::Expect(expected), Effect::Note(text), Effect::Refresh];
        Update { effects, redraw: true }
    }
}
