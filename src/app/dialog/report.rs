//! What is on its way, and what came of it, in one line.

use crate::model::plan::{Fate, Report, TargetResult, Verb};

/// Something that was confirmed, and of which there is no report yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// The number of the deed.
    pub number: u64,
    /// What is being done.
    pub verb: Verb,
    /// To how many.
    pub count: usize,
    /// Of how many it is known what came of it.
    pub done: usize,
}

impl Flight {
    /// `terminate: asking…`, `terminate 3: asking…`, and once the first has its answer `terminate 3: asking… 2 of 3`.
    #[must_use]
    pub fn words(&self) -> String {
        let verb = self.verb.does();
        match (self.count, self.done) {
            (0 | 1, _) => format!("{verb}: asking…"),
            (count, 0) => format!("{verb} {count}: asking…"),
            (count, done) => format!("{verb} {count}: asking… {} of {count}", (done + 1).min(count)),
        }
    }
}

/// What came of targets that had the same fate: `4312 no longer matched`.
fn fate_words(verb: Verb, fate: Fate) -> String {
    match fate {
        Fate::Done => verb.done().to_owned(),
        Fate::GivenUp => "given up after the last attempt".to_owned(),
        Fate::StillThere => "asked, still there".to_owned(),
        Fate::Changed => "no longer matched".to_owned(),
        Fate::Refused => "refused".to_owned(),
        Fate::Forbidden => "not permitted".to_owned(),
        Fate::Uncertain => "outcome unknown".to_owned(),
        Fate::NotTried => "not tried".to_owned(),
    }
}

/// The worst first: what somebody has to look after.
const FATES: [Fate; 7] = [
    Fate::Uncertain,
    Fate::StillThere,
    Fate::GivenUp,
    Fate::Forbidden,
    Fate::Refused,
    Fate::Changed,
    Fate::NotTried,
];

/// `4312`, `4312 and 2 more`.
fn names(results: &[&TargetResult]) -> String {
    let first = results.first().map_or("", |result| result.name.as_str());
    // The whole name is for one target alone; in a list the process id or number is enough.
    let short = first.split_whitespace().next().unwrap_or_default();
    let first =
        if results.len() > 1 || short.bytes().all(|byte| byte.is_ascii_digit()) { short } else { first };
    match results.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    }
}

/// One line of what came of a deed, and whether all of it went well.
pub(in crate::app) fn summary(report: &Report) -> (String, bool) {
    let well = report.results.iter().all(|result| result.fate == Fate::Done);
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
    let words = fate_words(verb, result.fate);
    if result.detail.is_empty() {
        format!("{} {words}", result.name)
    } else {
        format!("{} {words}: {}", result.name, result.detail)
    }
}

fn several(verb: Verb, results: &[TargetResult]) -> String {
    let count = results.iter().filter(|result| result.fate == Fate::Done).count();
    let mut text = format!("{count} of {} {}", results.len(), verb.done());
    for fate in FATES {
        let same: Vec<&TargetResult> = results.iter().filter(|result| result.fate == fate).collect();
        let Some(first) = same.first() else { continue };
        text = format!("{text}; {} {}", names(&same), fate_words(verb, fate));
        // Which grant is missing is worth the room.
        if matches!(fate, Fate::Forbidden | Fate::Refused) && !first.detail.is_empty() {
            text = format!("{text}: {}", first.detail);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::Subject;

    fn report(results: &[(&str, Fate, &str)]) -> Report {
        let result = |(name, fate, detail): &(&str, Fate, &str)| TargetResult {
            name: (*name).to_owned(),
            subject: Subject::Server,
            fate: *fate,
            detail: (*detail).to_owned(),
        };
        let results = results.iter().map(result).collect();
        Report { number: 1, verb: Verb::Terminate, results, notes: Vec::new() }
    }

    #[test]
    fn a_report_says_what_did_not_happen() {
        let grant = "GRANT pg_signal_backend TO ops would allow it";
        for (results, words, well) in [
            (vec![("4312 app@web-3", Fate::Done, "")], "4312 app@web-3 terminated", true),
            (
                vec![("4312 app@web-3", Fate::Forbidden, grant)],
                "4312 app@web-3 not permitted: GRANT pg_signal_backend TO ops would allow it",
                false,
            ),
            (vec![("1 a", Fate::Done, ""), ("2 b", Fate::Done, "")], "2 of 2 terminated", true),
            (
                vec![("job-1", Fate::Done, ""), ("job-3", Fate::GivenUp, "")],
                "1 of 2 terminated; job-3 given up after the last attempt",
                false,
            ),
            (
                vec![("1 a", Fate::Done, ""), ("4312 b", Fate::Changed, "gone"), ("3 c", Fate::Done, "")],
                "2 of 3 terminated; 4312 no longer matched",
                false,
            ),
            (
                vec![
                    ("1 a", Fate::NotTried, ""),
                    ("2 b", Fate::NotTried, ""),
                    ("3 c", Fate::Uncertain, "lost"),
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
        let report = Report { notes, ..report(&[("1", Fate::Done, "")]) };
        assert_eq!(summary(&report), ("1 terminated; the record could not be written".to_owned(), false));
    }
}
