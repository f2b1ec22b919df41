//! Notifies an operator who does not watch the screen that something has become critical.

use rustc_hash::FxHashMap;

use super::Timestamp;
use super::finding::{Finding, Severity, Subject};

/// A finding that reappears within this many seconds is not new.
const FORGOTTEN: i64 = 60;

/// How to notify. All off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of its own")]
pub struct Ways {
    /// BEL (`\a`), which the terminal turns into a sound, a flash or a mark.
    pub bell: bool,
    pub title: bool,
    /// A desktop notification in the form that iTerm2 accepts.
    pub osc9: bool,
    /// A desktop notification in the form that urxvt accepts.
    pub osc777: bool,
}

#[derive(Debug, Default)]
pub struct Alerts {
    /// When each was last seen. None before the first poll: its findings are already on the screen just opened.
    seen: Option<FxHashMap<(&'static str, Subject), Timestamp>>,
}

impl Alerts {
    /// The worst finding that became critical in this poll.
    pub fn look<'a>(&mut self, findings: &'a [Finding], at: Timestamp) -> Option<&'a Finding> {
        let is_first = self.seen.is_none();
        let seen = self.seen.get_or_insert_default();
        seen.retain(|_, last| (at - *last).num_seconds() < FORGOTTEN);
        let is_critical =
            |finding: &&Finding| finding.severity == Severity::Critical && finding.ended.is_none();
        let critical = findings.iter().filter(is_critical);
        let mut new = None;
        for finding in critical {
            let before = seen.insert((finding.check, finding.subject), at);
            new = new.or_else(|| before.is_none().then_some(finding));
        }
        new.filter(|_| !is_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(1_795_000_000 + seconds, 0).unwrap()
    }

    fn finding(pid: i32, severity: Severity) -> Finding {
        let party = crate::model::wait_graph::Party::Backend(pid);
        Finding::new("root_blocker", severity, "", Subject::Party(party))
    }

    #[test]
    fn only_what_becomes_critical_is_told_and_once() {
        use Severity::{Critical, Warning};
        let mut alerts = Alerts::default();
        let mut told = |seconds: i64, findings: &[(i32, Severity)]| {
            let findings: Vec<Finding> =
                findings.iter().map(|(pid, severity)| finding(*pid, *severity)).collect();
            alerts.look(&findings, at(seconds)).map(|finding| finding.subject)
        };
        let subject = |pid| Some(finding(pid, Critical).subject);
        assert_eq!(told(0, &[(1, Critical)]), None, "it is on the screen that was just opened");
        assert_eq!(told(1, &[(1, Critical), (2, Warning)]), None);
        assert_eq!(told(2, &[(1, Critical), (2, Critical), (3, Critical)]), subject(2), "the worst");
        assert_eq!(told(3, &[(3, Critical)]), None);
        assert_eq!(told(40, &[(2, Critical)]), None, "it was gone for a moment");
        assert_eq!(told(41, &[]), None);
        assert_eq!(told(101, &[(2, Critical)]), subject(2), "a minute later it is another time");
    }
}
