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
fn a_lease_that_never_ends_by_itself_is_told_once_it_is_old() {
    let view = view(installations::leasing(sample::at(0.0)));
    let told: Vec<_> = view.findings.iter().filter(|finding| finding.check == "adapter_lease").collect();
    let [told] = told[..] else { panic!("{told:?}") };
    assert_eq!(
        &*told.summary,
        "Liquibase: lease changelog 1 is held by pod-7 (10.0.0.7) for 3h02m, and never expires"
    );
    assert!(told.about.contains("liquibase release-locks"), "{}", told.about);
    assert!(matches!(told.subject, Subject::JobLease(_)));
    let mut young = installations::leasing(sample::at(0.0));
    for lease in Arc::make_mut(young.leases.rows_mut()) {
        lease.acquired_at = lease.acquired_at.map(|at| at.max(sample::at(-1_700.0)));
    }
    assert!(self::view(young).findings.iter().all(|finding| finding.check != "adapter_lease"));
}

#[test]
fn a_queue_that_is_far_behind_is_told_though_its_workers_live() {
    let late = |minutes: i64| {
        let mut rows = installations::beating(sample::at(0.0));
        for job in Arc::make_mut(rows.jobs.get_mut(&Part::Due).unwrap().rows_mut()) {
            job.due_at = Some(sample::at(0.0) - TimeDelta::minutes(minutes));
        }
        let view = view(rows);
        let told = view.findings.iter().find(|finding| finding.check == "adapter_overdue");
        told.map(|finding| finding.summary.to_string())
    };
    assert_eq!(late(9), None);
    let told = late(32).unwrap();
    assert!(told.contains("due, ") && told.ends_with("for 32m00s"), "{told}");
}

/// From 80 % of its limit on; past the limit another finding reports it.
#[test]
fn a_job_that_is_close_to_its_limit_is_told() {
    let told = |limit: Option<f64>, worker: &str| {
        let mut rows = installations::beating(sample::at(0.0));
        let running = rows.jobs.get_mut(&Part::Running).unwrap();
        let job = &mut Arc::make_mut(running.rows_mut())[0];
        (job.limit, job.worker) = (limit, Some(worker.into()));
        let view = view(rows);
        let told = view.findings.iter().find(|finding| finding.check == "adapter_limit");
        told.map(|finding| finding.summary.to_string())
    };
    // It has run for 14 s.
    assert_eq!(told(None, "1"), None);
    assert_eq!(told(Some(18.0), "1"), None);
    assert_eq!(told(Some(17.5), "1").as_deref(), Some("Solid Queue: job InvoiceJob has run for 14s of 17s"));
    assert_eq!(told(Some(13.0), "1"), None, "it is slow");
    assert_eq!(told(Some(17.5), "2"), None, "it is lost");
}
