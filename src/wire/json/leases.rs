use serde::Serialize;

use super::rows::{Time, exact};
use crate::model::lease::LeaseState;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;

#[derive(Debug, Serialize)]
pub(super) struct Lease<'a> {
    source: &'a str,
    /// Text even if the table has a number, because not every source has one.
    id: &'a str,
    owner: Option<&'a str>,
    acquired_at: Option<Time>,
    expires_at: Option<Time>,
    expired: bool,
    token: Option<i64>,
    token_text: Option<String>,
    state: &'static str,
    renewed_at: Option<Time>,
    term: Option<f64>,
    waiting: u32,
    owner_pid: Option<i32>,
    owner_alive: Option<bool>,
    set: Option<u16>,
}

pub(super) fn leases<'a>(view: &'a View, snapshot: &Snapshot) -> Vec<Lease<'a>> {
    let is_old = |source: &str| {
        let mut old = snapshot.systems.leases.iter().filter(|table| table.section.error.is_some());
        old.any(|table| *table.source.name == *source)
    };
    let rows = view.leases.rows.iter().filter(|row| !is_old(&row.source));
    rows.map(|row| Lease {
        source: &row.source,
        id: &row.name,
        owner: row.owner.as_deref(),
        acquired_at: row.acquired_at.map(Time),
        expires_at: row.expires_at.map(Time),
        expired: row.state == LeaseState::Expired,
        token: row.token,
        token_text: row.token.map(exact),
        state: row.state.as_str(),
        renewed_at: row.renewed_at.map(Time),
        term: row.term,
        waiting: row.waiting,
        owner_pid: row.owner_pid,
        owner_alive: row.owner_alive,
        set: row.set,
    })
    .collect()
}
