use crate::app::panes::{Pane, RowId};
use crate::model::plan::{Outcome, Report, TargetResult, Verb};

/// A confirmed command without a report yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    pub number: u64,
    pub verb: Verb,
    pub count: usize,
    pub done: usize,
    pub pane: Pane,
    pub rows: Vec<RowId>,
    /// Number of row selections on that pane up to the confirmation.
    pub selections: u64,
}

impl Flight {
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

pub(in crate::app) fn summary(report: &Report) -> (String, bool) {
    let well = report.results.iter().all(|result| result.outcome == Outcome::Done);
    let mut text = match report.results.as_slice() {
        [] => format!("nothing to {}", report.verb.does()),
        [only] => one(report.verb, only),
        all => several(report.verb, all),
    };
    for note in &report.notes {
        text.push_str("; ");
        text.push_str(note);
    }
    (text, well && report.notes.is_empty())
}

fn one(verb: Verb, result: &TargetResult) -> String {
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

    fn report(results: &[(&str, Outcome, &str)]) -> Report {
        let result = |(name, outcome, detail): &(&str, Outcome, &str)| TargetResult {
            name: (*name).to_owned(),
            subject: Subject::Server,
            outcome: *outcome,
            detail: (*detail).to_owned(),
        };
        let results = results.iter().map(result).collect();
        Report { number: 1, verb: Verb::Terminate, results, notes: Vec::new() }
    }

    #[test]
    fn a_report_says_what_did_not_happen() {
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
        let report = Report { notes, ..report(&[("1", Outcome::Done, "")]) };
        assert_eq!(summary(&report), ("1 terminated; the record could not be written".to_owned(), false));
    }
}
