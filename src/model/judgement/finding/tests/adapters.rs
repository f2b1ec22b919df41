use std::sync::Arc;

use chrono::TimeDelta;

use crate::model::adapter::{InstallationRows, Part, sample as installations};
use crate::model::finding::Subject;
use crate::model::view::View;
use crate::sample;

fn view(rows: InstallationRows) -> View {
    let mut snapshot = sample::Builder::default().snapshot();
    snapshot.adapters = Arc::new(vec![rows]);
    sample::view(snapshot, 1)
}

#[test]
fn an_old_lease_that_never_expires_is_reported() {
    let view = view(installations::leasing(sample::at(0.0)));
    let reported: Vec<_> = view.findings.iter().filter(|finding| finding.check == "adapter_lease").collect();
    let [reported] = reported[..] else { panic!("{reported:?}") };
    assert_eq!(
        &*reported.summary,
        "Liquibase: lease changelog 1 is held by pod-7 (10.0.0.7) for 3h02m, and never expires"
    );
    assert!(reported.about.contains("liquibase release-locks"), "{}", reported.about);
    assert!(matches!(reported.subject, Subject::JobLease(_)));
    let mut young = installations::leasing(sample::at(0.0));
    for lease in Arc::make_mut(young.leases.rows_mut()) {
        lease.acquired_at = lease.acquired_at.map(|at| at.max(sample::at(-1_700.0)));
    }
    assert!(self::view(young).findings.iter().all(|finding| finding.check != "adapter_lease"));
}

#[test]
fn an_overdue_queue_is_reported_although_its_workers_are_alive() {
    let late = |minutes: i64| {
        let mut rows = installations::beating(sample::at(0.0));
        for job in Arc::make_mut(rows.jobs.get_mut(&Part::Due).unwrap().rows_mut()) {
            job.due_at = Some(sample::at(0.0) - TimeDelta::minutes(minutes));
        }
        let view = view(rows);
        let reported = view.findings.iter().find(|finding| finding.check == "adapter_overdue");
        reported.map(|finding| finding.summary.to_string())
    };
    assert_eq!(late(9), None);
    let reported = late(32).unwrap();
    assert!(reported.contains("due, ") && reported.ends_with("for 32m00s"), "{reported}");
}

/// From 80 % of its limit on; past the limit another finding reports it.
#[test]
fn a_job_close_to_its_limit_is_reported() {
    let reported = |limit: Option<f64>, worker: &str| {
        let mut rows = installations::beating(sample::at(0.0));
        let running = rows.jobs.get_mut(&Part::Running).unwrap();
        let job = &mut Arc::make_mut(running.rows_mut())[0];
        (job.limit, job.worker) = (limit, Some(worker.into()));
        let view = view(rows);
        let reported = view.findings.iter().find(|finding| finding.check == "adapter_limit");
        reported.map(|finding| finding.summary.to_string())
    };
    // It has run for 14 s.
    assert_eq!(reported(None, "1"), None);
    assert_eq!(reported(Some(18.0), "1"), None);
    assert_eq!(
        reported(Some(17.5), "1").as_deref(),
        Some("Solid Queue: job InvoiceJob has run for 14s of 17s")
    );
    assert_eq!(reported(Some(13.0), "1"), None, "it is slow");
    assert_eq!(reported(Some(17.5), "2"), None, "it is lost");
}
