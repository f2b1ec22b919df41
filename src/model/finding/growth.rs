use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::growth::Growth;
use crate::text;

/// Expired rows that a daily purge may leave until its next run.
const OLD: u64 = 10_000;
/// Number of rows from which on a log without a retention is large.
const LARGE: u64 = 1_000_000;

/// One finding for each log that has outgrown its retention, or is large without one.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let snapshot = look.snapshot;
    let tasks = snapshot.task_sets.iter().filter(|set| set.tables.own_keys);
    let logs = tasks.filter_map(|set| Some((set.tables.executions.as_deref()?, set.tables.growth)));
    let queues = snapshot.systems.counts.iter().filter(|table| table.source.own_keys);
    let queues = queues.map(|table| (&*table.source.name, table.source.growth));
    logs.chain(queues).filter_map(|(name, growth)| finding(name, growth)).collect()
}

fn finding(table: &str, growth: Growth) -> Option<Finding> {
    let rows = |number| text::count_short(number);
    let (severity, summary, short) = match growth {
        Growth { old: Some(old), .. } if old >= OLD => (
            Severity::Warning,
            format!("{table}: about {} rows are past their retention; locktop schema purge", rows(old)),
            format!("{table}: about {} rows past retention", rows(old)),
        ),
        Growth { is_limited: false, rows: all, .. } if all >= LARGE => (
            Severity::Info,
            format!(
                "{table} has about {} rows and no retention; locktop schema purge --keep 30d removes old ones",
                rows(all)
            ),
            format!("{table}: about {} rows, no retention", rows(all)),
        ),
        _ => return None,
    };
    Some(Finding::new("log_growth", severity, summary, Subject::Server).short(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_that_is_past_its_retention_or_large_without_one() {
        let of = |growth| finding("locktop.task_execution_log", growth).map(|it| it.summary.to_string());
        let past = Growth { rows: 50_000, is_limited: true, old: Some(12_000) };
        let said =
            "locktop.task_execution_log: about 12k rows are past their retention; locktop schema purge";
        assert_eq!(of(past).as_deref(), Some(said));
        assert_eq!(of(Growth { old: Some(9_999), ..past }), None);
        assert_eq!(of(Growth { rows: 2_300_000, old: None, is_limited: true }), None);
        let large = Growth { rows: 2_300_000, ..Growth::default() };
        let said = "locktop.task_execution_log has about 2.3M rows and no retention; \
                    locktop schema purge --keep 30d removes old ones";
        assert_eq!(of(large).as_deref(), Some(said));
        assert_eq!(of(Growth { rows: 999_999, ..large }), None);
    }
}
