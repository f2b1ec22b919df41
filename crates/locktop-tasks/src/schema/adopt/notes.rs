use locktop_base::text::count;

/// The number of rows of a table in one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// `fresh`, or why they are not copied.
    pub(super) name: String,
    pub(super) rows: i64,
    /// The names of the first of them.
    pub(super) first: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Copied {
    pub(super) rows: i64,
    /// Rows that were enabled, running or in progress there.
    pub(super) active: i64,
    /// Tasks without a schedule; in other tables, rows with a non-standard status.
    pub(super) odd: i64,
    /// Rows with a new id.
    pub(super) renumbered: i64,
    /// The first of those: `1 is 7`.
    pub(super) first: Vec<String>,
}

pub(super) fn tasks(
    verdicts: &[Verdict],
    copied: &Copied,
    bad: &[(String, String)],
    enable: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if copied.rows > 0 {
        notes.push(match (enable, copied.active) {
            (true, active) => format!("{} enabled, as there", number(active)),
            (false, 0) => "disabled, as there".to_owned(),
            (false, active) => format!("all disabled here, {} enabled there", number(active)),
        });
    }
    for verdict in verdicts {
        let rows = number(verdict.rows);
        match verdict.name.as_str() {
            "here" => notes.push(format!("{rows} here since before")),
            "clash" => notes.push(format!(
                "{rows} skipped, because another task here has that name: {}; rename one, and run this again",
                listed(&verdict.first, verdict.rows)
            )),
            "schedule" => {
                let reasons: Vec<String> = bad.iter().take(3).map(|(_, reason)| reason.clone()).collect();
                notes.push(format!(
                    "{rows} skipped, because the schedule is not valid: {} ({}); correct it there, and run this again",
                    listed(&verdict.first, verdict.rows),
                    reasons.join("; ")
                ));
            }
            "twice" => notes.push(format!(
                "{rows} skipped, because several there have the same name: {}; rename all but one, and run this again",
                listed(&verdict.first, verdict.rows)
            )),
            "nameless" => notes.push(format!("{rows} skipped without an id, a name or a type")),
            _ => {}
        }
    }
    if copied.odd > 0 {
        notes.push(format!("{} without a schedule: here such a task runs once", number(copied.odd)));
    }
    notes.extend(renumbered(copied));
    notes
}

pub(super) fn executions(verdicts: &[Verdict], copied: &Copied) -> Vec<String> {
    let left = ("taskless", "skipped, because their task was not copied");
    jobs(verdicts, copied, left, "running there with a free key: failed here")
}

pub(super) fn items(verdicts: &[Verdict], copied: &Copied) -> Vec<String> {
    let left = ("open", "pending, not copied: --enable copies them");
    jobs(verdicts, copied, left, "processing there with a free key: pending here")
}

/// Notes about executions and items. `left` is the verdict on those that are not copied, and the note about them;
/// `active` is the note about those that were in progress.
fn jobs(verdicts: &[Verdict], copied: &Copied, left: (&str, &str), active: &str) -> Vec<String> {
    let mut notes = Vec::new();
    for verdict in verdicts {
        let rows = number(verdict.rows);
        match verdict.name.as_str() {
            "here" => notes.push(format!("{rows} here since before")),
            name if name == left.0 => notes.push(format!("{rows} {}", left.1)),
            _ => {}
        }
    }
    if copied.active > 0 {
        notes.push(format!("{} {active}", number(copied.active)));
    }
    if copied.odd > 0 {
        let odd = number(copied.odd);
        notes.push(format!("{odd} with another status: failed here, with the status in error_message"));
    }
    notes.extend(renumbered(copied));
    notes
}

fn renumbered(copied: &Copied) -> Option<String> {
    (copied.renumbered > 0).then(|| {
        format!(
            "{} with a new id, because the old one is in use here: {}",
            number(copied.renumbered),
            listed(&copied.first, copied.renumbered)
        )
    })
}

fn listed(first: &[String], all: i64) -> String {
    let more = all.saturating_sub(i64::try_from(first.len()).unwrap_or(i64::MAX));
    let first = first.join(", ");
    if more > 0 { format!("{first} and {} more", number(more)) } else { first }
}

fn number(rows: i64) -> String {
    count(rows.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, rows: i64, first: &[&str]) -> Verdict {
        Verdict { name: name.to_owned(), rows, first: first.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn every_row_that_is_not_copied_as_it_is_has_its_reason() {
        let copied = Copied {
            rows: 3,
            active: 2,
            odd: 1,
            renumbered: 12,
            first: vec!["1 is 7".into(), "2 is 8".into()],
        };
        let verdicts =
            [verdict("clash", 1, &["cleanup"]), verdict("fresh", 3, &["a"]), verdict("here", 1234, &["b"])];
        assert_eq!(
            tasks(&verdicts, &copied, &[], false),
            [
                "all disabled here, 2 enabled there",
                "1 skipped, because another task here has that name: cleanup; rename one, and run this again",
                "1,234 here since before",
                "1 without a schedule: here such a task runs once",
                "12 with a new id, because the old one is in use here: 1 is 7, 2 is 8 and 10 more",
            ]
        );
        let bad = [("often".to_owned(), "cron expression \"often\" has 1 fields in place of 5".to_owned())];
        assert_eq!(
            tasks(&[verdict("schedule", 1, &["sync"])], &Copied::default(), &bad, true),
            [
                "1 skipped, because the schedule is not valid: sync (cron expression \"often\" has 1 fields in place of 5); \
              correct it there, and run this again"
            ]
        );
        let open = [verdict("open", 4, &["1"])];
        assert_eq!(items(&open, &Copied::default()), ["4 pending, not copied: --enable copies them"]);
    }
}
