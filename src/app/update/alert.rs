use crate::app::App;
use crate::app::message::Effect;
use crate::model::alert::Ways;
use crate::model::finding::{Finding, Severity};
use crate::model::view::View;

/// The longest notification, in columns. Terminals and desktops cut longer ones.
const LONGEST: usize = 160;

impl App {
    pub(super) fn alert(&mut self, view: &View) -> Vec<Effect> {
        let ways = self.settings.notify;
        let Some(snapshot) = view.snapshot.as_deref().filter(|_| ways != Ways::default()) else {
            return Vec::new();
        };
        let mut effects = Vec::new();
        let new = self.alerts.look(&view.findings, snapshot.taken_at);
        if let Some(finding) = new.filter(|_| ways.bell || ways.osc9 || ways.osc777) {
            let text = format!("{}: {}", self.settings.target, finding.short);
            effects.push(Effect::Alert(ways, harmless(&text)));
        }
        if ways.title {
            effects.extend(self.retitle(view));
        }
        effects
    }

    fn retitle(&mut self, view: &View) -> Option<Effect> {
        let critical = |finding: &&Finding| finding.severity == Severity::Critical && finding.ended.is_none();
        let worst = view.findings.iter().find(critical);
        let target = &self.settings.target;
        let title = match worst {
            Some(worst) => format!("CRIT {} · {target}", worst.short),
            None => format!("locktop {target}"),
        };
        let title = harmless(&title);
        if self.title == title {
            return None;
        }
        self.title.clone_from(&title);
        Some(Effect::Title(title))
    }
}

/// One line without control characters, so that it neither ends nor starts an escape sequence.
fn harmless(text: &str) -> String {
    crate::text::fit(&crate::text::one_line(text), LONGEST).into_owned()
}
