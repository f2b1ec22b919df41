use super::super::{Alerts, Finding, Severity, Subject};
use crate::model::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_795_000_000 + seconds, 0).unwrap()
}

fn finding(pid: i32, severity: Severity) -> Finding {
    let party = crate::model::wait_graph::Party::Backend(pid);
    Finding::new("root_blocker", severity, "", Subject::Party(party))
}

#[test]
fn a_finding_that_becomes_critical_is_reported_once() {
    use Severity::{Critical, Warning};
    let mut alerts = Alerts::default();
    let mut reported = |seconds: i64, findings: &[(i32, Severity)]| {
        let findings: Vec<Finding> =
            findings.iter().map(|(pid, severity)| finding(*pid, *severity)).collect();
        alerts.next_new(&findings, at(seconds)).map(|finding| finding.subject)
    };
    let subject = |pid| Some(finding(pid, Critical).subject);
    assert_eq!(reported(0, &[(1, Critical)]), None, "it is on the screen that was just opened");
    assert_eq!(reported(1, &[(1, Critical), (2, Warning)]), None);
    assert_eq!(reported(2, &[(1, Critical), (2, Critical), (3, Critical)]), subject(2), "the worst");
    assert_eq!(reported(3, &[(3, Critical)]), None);
    assert_eq!(reported(40, &[(2, Critical)]), None, "it was absent for a moment");
    assert_eq!(reported(41, &[]), None);
    assert_eq!(reported(101, &[(2, Critical)]), subject(2), "a minute later it is new again");
}
