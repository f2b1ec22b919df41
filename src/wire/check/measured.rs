//! A value that is known, or the reason why it is not.

use crate::model::backend::Backend;
use crate::model::finding::Finding;
use crate::model::lock::Lock;
use crate::model::output::Channel;
use crate::model::section::Observed;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::systems::TableRows;
use crate::model::view::View;
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub value: f64,
    /// The session, task or table concerned: one line, which can be empty.
    pub about: String,
}

pub(super) fn measured(value: f64, about: impl Into<String>) -> Measured {
    Measured { value, about: about.into() }
}

pub(super) fn plain(value: f64) -> Observed<Measured> {
    Observed::Read(measured(value, ""))
}

pub(super) fn known(value: Option<f64>, reason: &str) -> Observed<Measured> {
    value.map_or_else(|| Observed::Unknown(reason.into()), plain)
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
pub(super) fn counted(number: u64) -> Measured {
    measured(number as f64, "")
}

pub(super) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

pub(super) fn section<'a, T>(section: &'a Section<T>, what: &str) -> Observed<&'a [T]> {
    match section.observed() {
        Observed::Unknown(reason) => {
            Observed::Unknown(format!("cannot read {what}: {}", crate::text::one_line(&reason)).into())
        }
        observed => observed,
    }
}

pub(super) fn unread<'a, T: 'a>(snapshot: &Snapshot, tables: &'a [TableRows<T>]) -> Option<Text> {
    let of = |table: &TableRows<T>| section(&table.section, &table.source.name).reason().cloned();
    tables.iter().find_map(of).or_else(|| unsearched(snapshot))
}

pub(super) fn unsearched(snapshot: &Snapshot) -> Option<Text> {
    section(&snapshot.detection.tables, "the catalog to find tables").reason().cloned()
}

/// The count. A count of zero is not known if a part could not be read.
pub(super) fn unless_unread(counted: Measured, unread: Option<Text>) -> Observed<Measured> {
    match unread {
        Some(reason) if counted.value <= 0.0 => Observed::Unknown(reason),
        _ => Observed::Read(counted),
    }
}

pub(super) fn locks(snapshot: &Snapshot) -> Observed<&[Lock]> {
    section(&snapshot.locks, "pg_locks")
}

pub(super) fn sessions(snapshot: &Snapshot) -> Observed<&[Backend]> {
    match snapshot.server() {
        Some(server) if !server.sees_all => Observed::Unknown(
            format!("{} cannot see the sessions of other roles: GRANT pg_read_all_stats", server.user).into(),
        ),
        _ => section(&snapshot.backends, "pg_stat_activity"),
    }
}

pub(super) fn age(snapshot: &Snapshot, since: Option<Timestamp>) -> Option<f64> {
    Some((snapshot.taken_at - since?).as_seconds_f64().max(0.0))
}

pub(super) fn about(view: &View, checks: &[&str]) -> String {
    let finding = view.findings.iter().find(|finding| checks.contains(&finding.check));
    finding.map(words).unwrap_or_default()
}

pub(super) fn words(finding: &Finding) -> String {
    let about = finding.about_in(Channel::Check);
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    format!("{}{about}", finding.short)
}

pub(super) fn of_check(view: &View, check: &str) -> Measured {
    let number = view.findings.iter().filter(|finding| finding.check == check).count();
    measured(count(number), about(view, &[check]))
}
