use super::object::{Json, exact, object};
use crate::model::lease::LeaseState;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;

pub(super) fn leases(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let is_old = |source: &str| {
        let mut old = snapshot.systems.leases.iter().filter(|table| table.section.error.is_some());
        old.any(|table| *table.source.name == *source)
    };
    let rows = view.leases.rows.iter().filter(move |row| !is_old(&row.source));
    // The id is text even if the table has a number, because not every source has one.
    rows.map(|row| {
        object!(
            row;
            source,
            id = row.name,
            owner,
            acquired_at,
            expires_at,
            expired = row.state == LeaseState::Expired,
            token,
            token_text = row.token.map(exact),
            state,
            renewed_at,
            term,
            waiting,
            owner_pid,
            owner_alive,
            set,
        )
    })
}
