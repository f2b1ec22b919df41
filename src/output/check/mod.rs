//! Checks for monitoring systems: measures, ranges, a status, a line for people, and performance data.
//!
//! Source: <https://www.monitoring-plugins.org/doc/guidelines.html>

mod measure;
mod measured;
mod range;
mod render;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::section::Observed;
use crate::model::sections::SectionRead;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::order::SortExt;

pub use measure::{MEASURES, Measure, measured_parts};
pub use measured::Measured;
pub use range::{Range, RangeError};
pub use render::{CheckFormat, render};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl Status {
    pub fn code(self) -> u8 {
        self as u8
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Order of severity: a known problem ranks above an unknown value.
    fn rank(self) -> Option<usize> {
        [Self::Ok, Self::Unknown, Self::Warning, Self::Critical].iter().position(|status| *status == self)
    }
}

#[derive(Debug, Clone, Default)]
pub struct CheckLimits {
    pub warning: BTreeMap<String, Range>,
    pub critical: BTreeMap<String, Range>,
    /// Only these checks; all if empty.
    pub only: Vec<String>,
    pub not: Vec<String>,
    /// `[check] exclude` of the config: sections that this role is known to be unable to read.
    pub excluded: Vec<String>,
}

/// Checks that do not measure the rows of one snapshot.
const CONNECT: &str = "connect";
const UNREAD: &str = "unread";
const BLOCKED_SECONDS: &str = "blocked_seconds";

pub fn names() -> impl Iterator<Item = &'static str> {
    [CONNECT].into_iter().chain(MEASURES.iter().map(|measure| measure.name)).chain([UNREAD, BLOCKED_SECONDS])
}

#[derive(Debug, Clone, PartialEq)]
pub struct JudgedMeasure {
    pub name: &'static str,
    /// Unit of performance data: `s`, `%`, `c` for a counter, or empty.
    pub unit: &'static str,
    pub value: Option<f64>,
    pub status: Status,
    /// The check warns outside this range; never if `None`.
    pub warning: Option<Range>,
    /// The check is critical outside this range; never if `None`.
    pub critical: Option<Range>,
    /// The session or object concerned, or why the value is not known; one line.
    pub about: String,
}

#[derive(Debug, Clone)]
pub struct CheckReport {
    pub checks: Vec<JudgedMeasure>,
    pub server: String,
    pub database: String,
}

impl CheckReport {
    /// Judges the snapshots: a problem must be in each of them, and the mildest of the values counts. `connect` is the time to
    /// the first answer, `apart` the interval between the snapshots.
    pub fn of(views: &[impl AsRef<View>], connect: Duration, apart: Duration, limits: &CheckLimits) -> Self {
        let mut checks = vec![limits.judge(CONNECT, "s", (None, None), known(connect.as_secs_f64()))];
        let snapshots: Vec<_> =
            views.iter().filter_map(|view| excluding(view.as_ref(), &limits.excluded)).collect();
        for measure in &MEASURES {
            let judged = snapshots.iter().map(|(view, snapshot)| {
                let value = (measure.read)(view, snapshot);
                limits.judge(measure.name, measure.unit, (measure.warning, measure.critical), value)
            });
            checks.push(judged.reduce(milder).flatten());
        }
        if let Some((_, snapshot)) = snapshots.last() {
            checks.push(limits.unread(snapshot));
        }
        let waited = views.windows(2).map(|pair| {
            let waiting: u32 = pair.iter().map(|view| view.as_ref().graph.waiting).sum();
            f64::from(waiting) / 2.0 * apart.as_secs_f64()
        });
        if views.len() > 1 {
            checks.push(limits.judge(BLOCKED_SECONDS, "s", (None, None), known(waited.sum())));
        }
        let is_asked_for = |judged: &JudgedMeasure| limits.wants(judged.name);
        let mut checks: Vec<_> = checks.into_iter().flatten().filter(is_asked_for).collect();
        checks.order_by_key(|judged| std::cmp::Reverse(judged.status.rank()));
        Self { checks, server: String::new(), database: String::new() }
    }

    pub fn of_failure(status: Status, about: String) -> Self {
        let (value, warning, critical) = (None, None, None);
        let judged = JudgedMeasure { name: CONNECT, unit: "s", value, status, warning, critical, about };
        Self { checks: vec![judged], server: String::new(), database: String::new() }
    }

    /// The worst status; `Unknown` without checks.
    pub fn status(&self) -> Status {
        self.checks.first().map_or(Status::Unknown, |judged| judged.status)
    }
}

fn known(value: f64) -> Observed<Measured> {
    Observed::Read(Measured { value, about: String::new() })
}

/// A view with its snapshot, in which excluded sections that cannot be read count as empty.
fn excluding<'a>(view: &'a View, excluded: &[String]) -> Option<(&'a View, Cow<'a, Snapshot>)> {
    let snapshot = view.snapshot.as_deref()?;
    let snapshot =
        if excluded.is_empty() { Cow::Borrowed(snapshot) } else { Cow::Owned(snapshot.excluding(excluded)) };
    Some((view, snapshot))
}

fn unread(unread: &[SectionRead<'_>]) -> String {
    let Some(first) = unread.first() else { return String::new() };
    let labels: Vec<_> = unread.iter().map(SectionRead::label).collect();
    let reason = first.error.unwrap_or(crate::model::section::NOT_YET);
    let reason = crate::text::one_line(reason);
    match &*labels {
        [only] => format!("cannot read {only}: {reason}"),
        all => format!("cannot read {} sections: {}; {}: {reason}", all.len(), all.join(", "), first.label()),
    }
}

/// The milder of two results of the same check. An unknown result counts only if the later one is unknown, too: what could
/// not be decided at first may have been decided since.
fn milder(one: Option<JudgedMeasure>, other: Option<JudgedMeasure>) -> Option<JudgedMeasure> {
    let (one, other) = (one?, other?);
    let is_known = |judged: &JudgedMeasure| judged.status != Status::Unknown;
    Some(match (is_known(&one), is_known(&other)) {
        (_, false) | (false, true) => other,
        (true, true) if other.status.rank() <= one.status.rank() => other,
        (true, true) => one,
    })
}

impl CheckLimits {
    fn wants(&self, name: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|wanted| wanted == name);
        (self.only.is_empty() || named(&self.only)) && !named(&self.not)
    }

    /// The number of unread sections. One is enough for UNKNOWN, unless a range of the command line makes it worse.
    fn unread(&self, snapshot: &Snapshot) -> Option<JudgedMeasure> {
        let sections = snapshot.unread();
        let value = f64::from(u32::try_from(sections.len()).unwrap_or(u32::MAX));
        let measured = Measured { value, about: unread(&sections) };
        let judged = self.judge(UNREAD, "", (None, None), Observed::Read(measured))?;
        let is_fine = judged.status == Status::Ok && sections.is_empty();
        let status = if is_fine || judged.status != Status::Ok { judged.status } else { Status::Unknown };
        Some(JudgedMeasure { status, ..judged })
    }

    /// `None` if there is nothing to measure, and the check was not requested by name.
    fn judge(
        &self,
        name: &'static str,
        unit: &'static str,
        default: (Option<Range>, Option<Range>),
        value: Observed<Measured>,
    ) -> Option<JudgedMeasure> {
        let warning = self.warning.get(name).copied().or(default.0);
        let critical = self.critical.get(name).copied().or(default.1);
        let asked = self.warning.contains_key(name)
            || self.critical.contains_key(name)
            || self.only.iter().any(|only| only == name);
        let alerts = |range: Option<Range>, value| range.is_some_and(|range| range.alerts(value));
        let (value, status, about) = match value {
            Observed::Read(Measured { value, about }) => {
                let status = match value {
                    value if alerts(critical, value) => Status::Critical,
                    value if alerts(warning, value) => Status::Warning,
                    _ => Status::Ok,
                };
                (Some(value), status, about)
            }
            Observed::Unknown(reason) => (None, Status::Unknown, reason.to_string()),
            Observed::Absent if asked => (None, Status::Unknown, "none exists".to_owned()),
            Observed::Absent => return None,
        };
        Some(JudgedMeasure { name, unit, value, status, warning, critical, about })
    }
}
