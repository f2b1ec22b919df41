//! The words of the question, and of its result.

use super::Dialog;
use crate::app::detail::wrapped;
use crate::app::line::{Line, Tone};
use crate::app::panes::{Pane, RowId};
use crate::model::consequence::{Consequence, DataEffect as OnData};
use crate::model::plan::{
    ActionPlan, ActionReport, Caution, ChosenTargets, KnownBlockers, Outcome, PlanEffect, PlannedTarget,
    Refused, TargetResult, Verb,
};
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
                ChosenTargets::Known(known) => format!("{verb} {}", known.name()),
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
        self.progress_lines().into_iter().flat_map(|line| wrapped(line, room)).collect()
    }

    fn progress_lines(&self) -> Vec<Line> {
        if let Some(over) = &self.over {
            return self.ended(over);
        }
        let mut lines = Vec::new();
        if let ChosenTargets::Known(known) = &self.chosen {
            lines.extend(known_lines(known));
        }
        if let ChosenTargets::Executions(search) = &self.chosen
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
fn effect(effect: &PlanEffect) -> Vec<Line> {
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

fn known_lines(known: &KnownBlockers) -> Vec<Line> {
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

/// A confirmed command without a report yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAction {
    pub number: u64,
    pub verb: Verb,
    pub count: usize,
    pub done: usize,
    pub pane: Pane,
    pub rows: Vec<RowId>,
    /// Number of row selections on that pane up to the confirmation.
    pub selections: u64,
}

impl PendingAction {
    /// `terminate: sending`, `terminate 3: sending`, and once the first has its answer `terminate 3: sending 2 of 3`.
    pub fn words(&self) -> String {
        let verb = self.verb.does();
        match (self.count, self.done) {
            (0 | 1, _) => format!("{verb}: sending"),
            (count, 0) => format!("{verb} {count}: sending"),
            (count, done) => format!("{verb} {count}: sending {} of {count}", (done + 1).min(count)),
        }
    }
}

/// All but `Done`, the worst first.
const FAILED: [Outcome; 7] = [
    Outcome::Uncertain,
    Outcome::StillThere,
    Outcome::GivenUp,
    Outcome::Forbidden,
    Outcome::Refused,
    Outcome::Changed,
    Outcome::NotTried,
];

/// For targets with the same outcome: `4312 no longer matched`.
fn outcome_words(verb: Verb, outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => verb.done(),
        Outcome::Uncertain => "outcome unknown",
        Outcome::StillThere => "requested, still running",
        Outcome::GivenUp => "failed for good after the last attempt",
        Outcome::Forbidden => "not permitted",
        Outcome::Refused => "refused",
        Outcome::Changed => "no longer matched",
        Outcome::NotTried => "not tried",
    }
}

fn names(results: &[&TargetResult]) -> String {
    let first = results.first().map_or("", |result| result.name.as_str());
    // A single target is shown with its whole name; in a list the process id or number is enough.
    let short = first.split_whitespace().next().unwrap_or_default();
    let first =
        if results.len() > 1 || short.bytes().all(|byte| byte.is_ascii_digit()) { short } else { first };
    match results.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    }
}

pub(in crate::app) fn summary(report: &ActionReport) -> (String, bool) {
    let well = report.results.iter().all(|result| result.outcome == Outcome::Done);
    let mut text = match report.results.as_slice() {
        [] => format!("nothing to {}", report.verb.does()),
        [only] => alone(report.verb, only),
        all => several(report.verb, all),
    };
    for note in &report.notes {
        text.push_str("; ");
        text.push_str(note);
    }
    (text, well && report.notes.is_empty())
}

fn alone(verb: Verb, result: &TargetResult) -> String {
    let words = outcome_words(verb, result.outcome);
    // The detail after the first clause is in the event and on record; a line has no room for it.
    let detail = match result.outcome {
        Outcome::Done => result.detail.split("; ").next().unwrap_or_default(),
        _ => &result.detail,
    };
    if detail.is_empty() {
        format!("{} {words}", result.name)
    } else if detail.starts_with(words) {
        format!("{} {detail}", result.name)
    } else {
        format!("{} {words}: {detail}", result.name)
    }
}

fn several(verb: Verb, results: &[TargetResult]) -> String {
    let count = results.iter().filter(|result| result.outcome == Outcome::Done).count();
    let mut text = format!("{count} of {} {}", results.len(), verb.done());
    for outcome in FAILED {
        let same: Vec<&TargetResult> = results.iter().filter(|result| result.outcome == outcome).collect();
        let Some(first) = same.first() else { continue };
        text = format!("{text}; {} {}", names(&same), outcome_words(verb, outcome));
        // The missing grant is worth the space.
        if matches!(outcome, Outcome::Forbidden | Outcome::Refused) && !first.detail.is_empty() {
            text = format!("{text}: {}", first.detail);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::Subject;

    fn report(results: &[(&str, Outcome, &str)]) -> ActionReport {
        let result = |(name, outcome, detail): &(&str, Outcome, &str)| TargetResult {
            name: (*name).to_owned(),
            subject: Subject::Server,
            outcome: *outcome,
            detail: (*detail).to_owned(),
        };
        let results = results.iter().map(result).collect();
        ActionReport { number: 1, verb: Verb::Terminate, results, notes: Vec::new() }
    }

    #[test]
    fn the_summary_names_targets_that_failed() {
        let grant = "GRANT pg_signal_backend TO ops would allow it";
        for (results, words, well) in [
            (vec![("4312 app@web-3", Outcome::Done, "")], "4312 app@web-3 terminated", true),
            (
                vec![("4312 app@web-3", Outcome::Forbidden, grant)],
                "4312 app@web-3 not permitted: GRANT pg_signal_backend TO ops would allow it",
                false,
            ),
            (
                vec![("job", Outcome::Done, "it is due again; key 7 was free")],
                "job terminated: it is due again",
                true,
            ),
            (vec![("1 a", Outcome::Done, ""), ("2 b", Outcome::Done, "")], "2 of 2 terminated", true),
            (
                vec![("job-1", Outcome::Done, ""), ("job-3", Outcome::GivenUp, "")],
                "1 of 2 terminated; job-3 failed for good after the last attempt",
                false,
            ),
            (
                vec![
                    ("1 a", Outcome::Done, ""),
                    ("4312 b", Outcome::Changed, "gone"),
                    ("3 c", Outcome::Done, ""),
                ],
                "2 of 3 terminated; 4312 no longer matched",
                false,
            ),
            (
                vec![
                    ("1 a", Outcome::NotTried, ""),
                    ("2 b", Outcome::NotTried, ""),
                    ("3 c", Outcome::Uncertain, "lost"),
                ],
                "0 of 3 terminated; 3 outcome unknown; 1 and 1 more not tried",
                false,
            ),
        ] {
            assert_eq!(summary(&report(&results)), (words.to_owned(), well));
        }
    }

    #[test]
    fn a_note_is_never_left_out() {
        let notes = vec!["the record could not be written".to_owned()];
        let report = ActionReport { notes, ..report(&[("1", Outcome::Done, "")]) };
        assert_eq!(summary(&report), ("1 terminated; the record could not be written".to_owned(), false));
    }
}
