use crate::model::Timestamp;
use crate::model::refusals::{Refusals, WINDOW};
use crate::model::section::Observed;
use crate::model::systems::Systems;
use crate::model::view::{Sample, Series};
use crate::model::wait_graph::WaitGraph;

/// The series with what was refused by now, and without what is older than the window.
pub fn refused(series: &mut Series, at: Timestamp, systems: &Systems) {
    let is_recent = |then: Timestamp| then < at && (at - then).as_seconds_f64() <= WINDOW;
    series.refusals.retain(|sample| sample.at.is_some_and(is_recent));
    // A table that is not known this time would look like a counter that started again.
    let rows = systems.refusals.iter().map(|table| match table.section.observed() {
        Observed::Read(rows) => rows.first().cloned(),
        _ => None,
    });
    let rows: Option<Vec<Refusals>> = rows.collect();
    let sum = rows.into_iter().flatten().reduce(|sum, row| sum.plus(&row));
    series.refusals.extend(sum.filter(Refusals::is_known).map(|sum| Refusals { at: Some(at), ..sum }));
}

pub fn extended(series: &Series, at: Timestamp, graph: &WaitGraph, minutes: u32) -> Series {
    let oldest = at - chrono::TimeDelta::minutes(i64::from(minutes));
    let start = series.samples.partition_point(|sample| sample.at < oldest);
    let kept = series.samples.get(start..).unwrap_or_default();
    let mut samples = Vec::with_capacity(kept.len() + 1);
    // If the clock was set back, earlier samples may be in the future.
    samples.extend(kept.iter().filter(|sample| sample.at < at));
    samples.push(Sample { at, waiting: graph.waiting });
    let waiting_since =
        (graph.waiting > 0).then(|| series.waiting_since.unwrap_or_else(|| began(graph).unwrap_or(at)));
    Series { samples, waiting_since, refusals: series.refusals.clone() }
}

fn began(graph: &WaitGraph) -> Option<Timestamp> {
    graph.queues.iter().flat_map(|queue| &queue.waiters).filter_map(|waiter| waiter.wait_start).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::section::Section;
    use crate::model::systems::TableRows;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(seconds, 0).unwrap()
    }

    fn waiting(waiting: u32) -> WaitGraph {
        let mut graph = WaitGraph::default();
        graph.waiting = waiting;
        graph
    }

    #[test]
    fn samples_fall_off_at_the_far_end() {
        let mut series = Series::default();
        for second in 0..200 {
            series = extended(&series, at(second), &waiting(0), 1);
        }
        assert_eq!(series.samples.len(), 61);
        assert_eq!(series.samples[0].at, at(139));
        assert_eq!(series.samples[60].at, at(199));
    }

    #[test]
    fn refusals_of_a_table_that_is_not_known_are_no_sample_and_old_ones_fall_off() {
        let table = |count: Option<i64>| TableRows {
            section: count.map_or_else(Section::default, |count| {
                Section::fresh(vec![Refusals { rate_limit: Some(count), ..Refusals::default() }], at(0))
            }),
            ..TableRows::default()
        };
        let systems = |counts: &[Option<i64>]| Systems {
            refusals: counts.iter().map(|count| table(*count)).collect(),
            ..Systems::default()
        };
        let mut series = Series::default();
        for (second, counts) in [(0, [Some(5), Some(100)]), (2, [None, Some(100)]), (4, [Some(6), Some(100)])]
        {
            refused(&mut series, at(second), &systems(&counts));
        }
        let known = |series: &Series| series.refusals.iter().map(|one| one.rate_limit).collect::<Vec<_>>();
        assert_eq!(known(&series), [Some(105), Some(106)]);
        refused(&mut series, at(62), &systems(&[]));
        assert_eq!(known(&series), [Some(106)]);
        refused(&mut series, at(70), &systems(&[]));
        assert_eq!(known(&series), []);
    }

    #[test]
    fn the_beginning_of_waiting_stays_until_nobody_waits() {
        let first = extended(&Series::default(), at(10), &waiting(1), 15);
        let second = extended(&first, at(11), &waiting(3), 15);
        assert_eq!(second.waiting_since, Some(at(10)));
        let none = extended(&second, at(12), &waiting(0), 15);
        assert_eq!(none.waiting_since, None);
        assert_eq!(extended(&none, at(13), &waiting(1), 15).waiting_since, Some(at(13)));
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_no_samples_of_the_future() {
        let series = extended(&Series::default(), at(100), &waiting(0), 15);
        let series = extended(&series, at(50), &waiting(0), 15);
        assert_eq!(series.samples.iter().map(|sample| sample.at).collect::<Vec<_>>(), [at(50)]);
    }
}
