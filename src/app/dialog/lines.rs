use super::Dialog;
use crate::app::detail::wrapped;
use crate::app::line::{Line, Tone};
use crate::model::consequence::{Consequence, Effect as OnData};
use crate::model::plan::{ActionPlan, Caution, Chosen, Effect, Known, PlannedTarget, Refused, Verb};
use crate::model::thresholds::ExpectedBlocker;

/// Maximum width of a dialog, the same on all screens, so that lines appear at the same place.
const WIDEST: u16 = 78;

pub fn width(columns: u16) -> u16 {
    columns.saturating_sub(2).min(WIDEST)
}

impl Dialog {
    /// The text on its frame: `Terminate 4312 app@web-3`.
    pub fn title(&self) -> String {
        let verb = self.plan.verb.does();
        let verb = verb.get(..1).unwrap_or_default().to_uppercase() + verb.get(1..).unwrap_or_default();
        let of = match self.plan.verb {
            Verb::Cancel => " of",
            Verb::MakeDue | Verb::PutOff => ":",
            _ => "",
        };
        match self.plan.rows.as_slice() {
            [] => match &self.chosen {
                Chosen::Known(known) => format!("{verb} {}", known.name()),
                _ => verb,
            },
            [only] => format!("{verb}{of} {}", only.target.name),
            several => {
                let count = crate::text::count(several.len() as u64);
                format!("{verb}{of} {count} {}s", self.chosen.one(self.plan.verb))
            }
        }
    }

    pub fn lines(&self, columns: u16) -> Vec<Line> {
        // The border, and a blank on each side.
        let room = usize::from(width(columns).saturating_sub(4));
        self.said().into_iter().flat_map(|line| wrapped(line, room)).collect()
    }

    fn said(&self) -> Vec<Line> {
        if let Some(over) = &self.over {
            return self.ended(over);
        }
        let mut lines = Vec::new();
        if let Chosen::Known(known) = &self.chosen {
            lines.extend(known_lines(known));
        }
        if let Chosen::Executions(search) = &self.chosen
            && let Some((word, is_bad)) = search.word()
        {
            lines.push(Line::new().with(word, if is_bad { Tone::Critical } else { Tone::Dim }));
        }
        match self.plan.rows.as_slice() {
            [only] => lines.extend(one(only)),
            several => lines.extend(all(&self.plan, several)),
        }
        if !self.plan.refused.is_empty() {
            let heading = if self.plan.rows.is_empty() { "Not possible:" } else { "Skipped:" };
            lines.push(Line::new().with(heading, Tone::Title));
            lines.extend(self.plan.refused.iter().map(refused));
        }
        lines.extend(hidden(self.hidden, "marked row"));
        lines.extend(hidden(self.plan.hidden, self.chosen.one(self.plan.verb)));
        lines
    }

    /// Why nothing can be confirmed any more, and for several targets the change of each.
    fn ended(&self, over: &str) -> Vec<Line> {
        let rows = self.plan.rows.iter().filter(|_| self.plan.rows.len() > 1);
        let each = rows.filter_map(|row| Some(format!("{}: {}", row.target.name, row.change.as_ref()?)));
        let mut lines = vec![Line::new().with(over, Tone::Warning)];
        lines.extend(each.map(|line| Line::new().with(line, Tone::Plain)));
        lines
    }
}

fn change(row: &PlannedTarget) -> Option<Line> {
    let words = row.change.as_ref()?.to_string();
    Some(field("changed", format!("{words}: skipped"), Tone::Past))
}

fn caution(caution: &Caution) -> Line {
    field("!", caution.words.as_str(), Tone::Warning)
}

/// The label of what is sent: a statement, or a command to Redis.
fn does(row: &PlannedTarget) -> &'static str {
    if row.does.starts_with("delete ") { "does" } else { "SQL" }
}

/// Yellow if no session continues at once.
fn effect(effect: &Effect) -> Vec<Line> {
    let tone = if effect.blocks.starts_with("no ") {
        Tone::Plain
    } else if effect.release.now.is_empty() {
        Tone::Warning
    } else {
        Tone::Good
    };
    let mut lines = vec![field("blocks", effect.blocks.as_str(), tone)];
    lines.extend(effect.named.iter().map(|(label, names)| field(label, names.as_str(), Tone::Plain)));
    lines
}

/// Damage is red.
fn consequence(consequence: &Consequence) -> Line {
    let tone = match consequence.effect {
        effect if effect.leaves_damage() => Tone::Critical,
        OnData::NoneYet | OnData::Restarts => Tone::Warning,
        _ => Tone::Plain,
    };
    field("effect", consequence.words.as_str(), tone)
}

fn one(row: &PlannedTarget) -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(change(row));
    lines.extend(row.effect.iter().flat_map(effect));
    lines.extend(row.consequence.as_ref().map(consequence));
    lines.extend(row.cautions.iter().map(caution));
    let label = |at: usize| if at == 0 { "state" } else { "" };
    let facts = row.facts.iter().enumerate();
    lines.extend(facts.map(|(at, fact)| field(label(at), fact.as_str(), Tone::Plain)));
    lines.push(field(does(row), row.does.as_str(), Tone::Plain));
    lines
}

/// Whether a caution applies to every row: then it is shown once.
fn is_common(rows: &[PlannedTarget], caution: &Caution) -> bool {
    rows.iter().all(|row| row.cautions.contains(caution))
}

fn all(plan: &ActionPlan, rows: &[PlannedTarget]) -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(plan.effect.iter().flat_map(effect));
    let common = rows.first().into_iter().flat_map(|row| &row.cautions).filter(|one| is_common(rows, one));
    lines.extend(common.map(caution));
    for row in rows {
        let mut line = Line::new().with(row.target.name.as_str(), Tone::Title);
        line.push(row.facts.first().map(|fact| format!("  {fact}")).unwrap_or_default(), Tone::Plain);
        lines.push(line);
        lines.extend(change(row));
        lines.extend(row.consequence.as_ref().map(consequence));
        lines.extend(row.cautions.iter().filter(|one| !is_common(rows, one)).map(caution));
    }
    lines
}

fn refused(row: &Refused) -> Line {
    // The reason of a recovery is worded for the command line, with its option.
    let reason = row.reason.strip_prefix("skipped: ").unwrap_or(&row.reason);
    let reason = reason.strip_suffix(" (--terminate terminates that session)").unwrap_or(reason);
    Line::new().with("  ", Tone::Plain).with(format!("{}: {reason}", row.name), Tone::Warning)
}

/// `2 marked rows are hidden by the filter and skipped`.
fn hidden(count: usize, what: &str) -> Option<Line> {
    let text = match count {
        0 => return None,
        1 => format!("1 {what} is hidden by the filter and skipped"),
        several => format!("{several} {what}s are hidden by the filter and skipped"),
    };
    Some(Line::new().with(text, Tone::Warning))
}

pub(super) fn field(label: &str, text: impl Into<String>, tone: Tone) -> Line {
    Line::new().with(format!("{label:<9} "), Tone::Dim).with(text, tone)
}

fn known_lines(known: &Known) -> Vec<Line> {
    let mut lines = Vec::new();
    let entries = known.entries();
    for entry in &entries {
        let label = |at: usize| if at == 0 { "entry" } else { "" };
        let keys = entry.toml();
        lines.extend(keys.lines().enumerate().map(|(at, key)| field(label(at), key, Tone::Plain)));
    }
    let (sessions, blocking) = known.met;
    if known.takes_away {
        lines.push(field("effect", "its waits are reported like any others", Tone::Good));
        lines.push(field("", "in this run; the config file is not changed", Tone::Plain));
    } else {
        lines.push(field("effect", "its waits are only info findings, in this run", Tone::Good));
        lines.push(field("", "printed at quit, to be copied into the config file", Tone::Plain));
    }
    let one = if sessions == 1 { "session matches" } else { "sessions match" };
    let blocks = if blocking == 1 { "blocks" } else { "block" };
    let text = format!("{sessions} {one} it now; {blocking} {blocks} others");
    let tone = if sessions > known.rows.len() { Tone::Warning } else { Tone::Plain };
    lines.push(field("who", text, tone));
    if !known.takes_away && entries.iter().any(is_wide) {
        let wide = "every session of this role matches it, now and later";
        lines.push(field("!", wide, Tone::Warning));
    }
    lines.extend(known.refused.iter().map(|why| field("!", why.as_str(), Tone::Warning)));
    lines
}

/// The entry names neither an application nor a statement, as for a prepared transaction, which has neither.
fn is_wide(entry: &ExpectedBlocker) -> bool {
    let ExpectedBlocker { application, lock, statement, .. } = entry;
    application.is_none() && lock.is_none() && statement.is_none()
}
