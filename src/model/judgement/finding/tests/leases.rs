use crate::model::finding::{Finding, Severity};
use crate::sample::Builder;

fn reported(builder: Builder) -> Vec<Finding> {
    let view = builder.view();
    view.findings.iter().filter(|finding| finding.check == "expired_lease").cloned().collect()
}

#[test]
fn an_expired_lease_that_was_not_released_is_reported_with_its_owner() {
    let mut b = Builder::default();
    b.lease("1", "node2", 20.0, 8.0);
    b.lease("7", "node1\n\u{1b}[31m", 20.0, 61.0);
    b.lease("8", "", 20.0, 61.0).owner = None;
    b.lease("9", "node1", 0.0, 61.0);
    let findings = reported(b);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(&*finding.summary, "lease 7 of node1 ␛[31m expired 41s ago and was not released");
    assert_eq!(&*finding.short, "lease 7 of node1 ␛[31m expired 41s ago");
    assert_eq!((finding.severity, finding.help), (Severity::Warning, None));
}

#[test]
fn a_lease_that_outlives_its_term_reports_a_clock_set_back() {
    let ahead = |b: Builder| {
        let view = b.view();
        view.findings.iter().filter(|finding| finding.check == "lease_ahead").cloned().collect::<Vec<_>>()
    };
    let mut b = Builder::default();
    b.lease("1", "node2", 20.0, 8.0);
    b.lease("2", "node2", 20.0, -1.0);
    b.lease("3", "", 1.0, -3600.0).owner = None;
    assert_eq!(ahead(b), []);
    let mut b = Builder::default();
    b.lease("6", "node1", 1.0, -60.0);
    b.lease("7", "node1", 1.0, -3600.0);
    let findings = ahead(b);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    let expected = "lease 7 of node1 ends in 1h00m, later than its term of 1.0s permits: the clock was set back (2 such leases)";
    assert_eq!((&*finding.summary, finding.severity), (expected, Severity::Warning));
}

#[test]
fn many_at_once_have_one_cause_and_are_one_finding() {
    let mut b = Builder::default();
    for id in 0..1200 {
        b.lease(&id.to_string(), "node1", 20.0, 61.0 + f64::from(id));
    }
    let findings = reported(b);
    let [finding] = findings.as_slice() else { panic!("{} findings", findings.len()) };
    assert_eq!(&*finding.short, "1,200 leases expired, first 1199 of node1 20m40s ago");
}
