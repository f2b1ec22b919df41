//! Finds which privilege is missing.
//!
//! The rules are those of `pg_signal_backend()` in `src/backend/storage/ipc/signalfuncs.c`. Only a superuser may signal
//! a superuser's process or one that belongs to no role; from version 18 a member of `pg_signal_autovacuum_worker` may
//! signal an autovacuum worker; any other process may be signalled by a role with the privileges of the process's role
//! or of `pg_signal_backend`.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio_postgres::Client;

use super::sql;
use crate::action::message::{Access, Unanswered, send};

#[derive(Debug, Deserialize)]
struct Rights {
    role: String,
    version: u32,
    owner: Option<String>,
    owner_is_superuser: Option<bool>,
    kind: Option<String>,
}

pub(super) async fn signal(client: &Client, pid: i32, error: &Unanswered) -> String {
    match look(client, pid).await {
        Some(rights) => format!("{error}; {}", rights.signal()),
        None => error.to_string(),
    }
}

/// For a session whose start is hidden from the role.
pub(super) async fn hidden(client: &Client, pid: i32) -> String {
    let role = look(client, pid).await.map(|rights| rights.role);
    let role = role.as_deref().unwrap_or("CURRENT_ROLE");
    format!(
        "its start is hidden from role {role}, so it cannot be distinguished from another session: GRANT pg_read_all_stats TO {}",
        escape_identifier(role)
    )
}

/// `None` if the server does not answer; the message then does without it.
async fn look(client: &Client, pid: i32) -> Option<Rights> {
    let rows = send(client, Access::ReadOnly, &sql::rights(pid)).await.ok()?;
    serde_json::from_str(rows.first()?).ok()
}

impl Rights {
    fn signal(&self) -> String {
        let role = escape_identifier(&self.role);
        let who = format!("role {} is not permitted to signal it", self.role);
        if self.kind.as_deref() == Some("autovacuum worker") {
            return if self.version >= 180_000 {
                format!("{who}: GRANT pg_signal_autovacuum_worker TO {role}")
            } else {
                format!("{who}: before PostgreSQL 18 only a superuser can terminate an autovacuum worker")
            };
        }
        match (&self.owner, self.owner_is_superuser) {
            (Some(owner), Some(true)) => {
                format!("{who}: it is a superuser's ({owner}), and only a superuser can")
            }
            (Some(owner), _) => format!(
                "{who}: GRANT pg_signal_backend TO {role}, or GRANT {} TO {role}",
                escape_identifier(owner)
            ),
            (None, _) => format!("{who}: it belongs to no role, and only a superuser can"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grant_that_helps_is_named() {
        let rights = |version, owner: Option<(&str, bool)>, kind: &str| Rights {
            role: "ops".to_owned(),
            version,
            owner: owner.map(|(name, _)| name.to_owned()),
            owner_is_superuser: owner.map(|(_, is_superuser)| is_superuser),
            kind: Some(kind.to_owned()),
        };
        let client = "client backend";
        for (rights, expected) in [
            (
                rights(170_002, Some(("app", false)), client),
                "GRANT pg_signal_backend TO \"ops\", or GRANT \"app\"",
            ),
            (
                rights(170_002, Some(("dba", true)), client),
                "it is a superuser's (dba), and only a superuser can",
            ),
            (rights(170_002, None, "autovacuum worker"), "before PostgreSQL 18 only a superuser"),
            (rights(180_000, None, "autovacuum worker"), "GRANT pg_signal_autovacuum_worker TO \"ops\""),
            (rights(180_000, None, "checkpointer"), "it belongs to no role"),
        ] {
            assert!(rights.signal().contains(expected), "{}", rights.signal());
        }
    }
}
