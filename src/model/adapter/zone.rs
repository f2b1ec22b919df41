//! Detects timestamps without a zone that may be in another zone than UTC, in which they are read.

use chrono::TimeDelta;

use super::InstallationRows;

/// Time zones differ by multiples of this, with few exceptions. In seconds.
const STEP: i64 = 1800;
/// Maximum age of a live worker's last sign of life, in seconds, even if its system allows more.
const FRESH: f64 = 120.0;

/// By how much the times of its workers are behind or ahead of the server's: if the last sign of life of each worker
/// differs by the same multiple of half an hour, plus at most the age allowed for a live worker. For a dead worker this may
/// be chance.
pub fn offset(rows: &InstallationRows) -> Option<TimeDelta> {
    let section = &rows.workers;
    let read_at = section.taken_at.filter(|_| section.error.is_none())?;
    let of_all = rows.installation.adapter.beat_limit();
    let mut found = None;
    for worker in section.last_rows().iter().filter(|worker| worker.stopped_at.is_none()) {
        let Some((beat, limit)) = worker.beat_at.zip(worker.beat_limit.or(of_all)) else { continue };
        let age = read_at - beat;
        let offset = TimeDelta::seconds(age.num_seconds().div_euclid(STEP) * STEP);
        let is_off = !offset.is_zero() && (age - offset).as_seconds_f64() <= limit.min(FRESH);
        if !is_off || *found.get_or_insert(offset) != offset {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::adapter::sample;

    #[test]
    fn what_lies_off_by_whole_half_hours_may_be_of_another_zone() {
        let start = crate::sample::at(0.0);
        for (ages, expected) in [
            (&[5 * 3600 + 20][..], Some(18000)),
            (&[5 * 3600 + 20, 5 * 3600 + 100], Some(18000)),
            (&[-2 * 3600 + 20], Some(-7200)),
            (&[1800], Some(1800)),
            (&[], None),
            (&[20], None),
            (&[5 * 3600 + 121], None),
            (&[5 * 3600 - 20], None),
            (&[5 * 3600 + 20, 20], None),
            (&[5 * 3600 + 20, 6 * 3600 + 20], None),
        ] {
            let mut rows = sample::beating(start);
            let worker = rows.workers.last_rows()[0].clone();
            let of = |age: &i64| super::super::Worker {
                beat_at: Some(start - TimeDelta::seconds(*age)),
                stopped_at: None,
                ..worker.clone()
            };
            rows.workers.set(ages.iter().map(of).collect::<Vec<_>>());
            assert_eq!(offset(&rows), expected.map(TimeDelta::seconds), "{ages:?}");
        }
    }
}
