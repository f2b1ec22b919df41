//! Findings about leases.

use crate::model::finding::{Finding, Severity};
use crate::sample::Builder;

fn told(builder: Builder) -> Vec<Finding> {
    let view = builder.view();
    view.findings.iter().filter(|finding| finding.check == "expired_lease").cloned().collect()
}

#[test]
fn a_lease_that_ended_and_was_not_given_back_is_told_with_its_owner() {
    let mut b = Builder::default();
    b.lease("1", "node2", 20.0, 8.0);
    b.lease("7", "node1\n\u{1b}[31m", 20.0, 61.0);
    b.lease("8", "", 20.0, 61.0).owner = None;
    b.lease("9", "node1", 0.0, 61.0);
    let findings = told(b);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(&*finding.summary, "lease 7 of node1 ␛[31m expired 41s ago and was not given back");
    assert_eq!(&*finding.short, "lease 7 of node1 ␛[31m expired 41s ago");
    assert_eq!((finding.severity, finding.help), (Severity::Warning, None));
}

#[test]
fn many_at_once_have_one_cause_and_are_one_finding() {
    let mut b = Builder::default();
    for id in 0..1200 {
        b.lease(&id.to_string(), "node1", 20.0, 61.0 + f64::from(id));
    }
    let findings = told(b);
    let [finding] = findings.as_slice() else { panic!("{} findings", findings.len()) };
    assert_eq!(&*finding.short, "1,200 leases expired, first 1199 of node1 20m40s ago");
}
