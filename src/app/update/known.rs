use crate::app::App;
use crate::app::dialog::Expecting;
use crate::app::message::{Effect, Update};
use crate::model::plan::Verb;

impl App {
    /// Applies a confirmed change from the next poll on, which it requests at once.
    pub(super) fn expect(&mut self, expecting: &Expecting) -> Update {
        let known = &expecting.known;
        self.expected = known.applied(&self.expected).into();
        let (name, written) = (known.name(), expecting.written());
        let text = match known.verb() {
            Verb::ExpectNoMore => format!("{name} is no longer expected"),
            _ => format!("{name} is expected now"),
        };
        let is_kept = !written.is_empty();
        self.say(if is_kept { text.clone() } else { format!("{text}, in this run") });
        let expected = std::sync::Arc::clone(&self.expected);
        let effects = vec![Effect::Expect { expected, written }, Effect::Note(text), Effect::Refresh];
        Update { effects, redraw: true }
    }
}
