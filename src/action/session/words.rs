use chrono::FixedOffset;
use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio_postgres::Client;

use super::{SignalAnswer, sql};
use crate::action::message::{Access, Unanswered, send};
use crate::model::Timestamp;
use crate::model::plan::{ExpectedTime, SessionTarget, Signal};
use crate::text::one_line;

pub(in crate::action) const OWN: &str = "that is locktop's own session";

/// How the session differs from what was seen, with times in the zone `offset`.
pub(super) fn changed(offset: FixedOffset, seen: &SessionTarget, now: &SignalAnswer) -> String {
    let began = |was: Option<Timestamp>, is: Option<Timestamp>| start_change(offset, was, is);
    match now.word.as_str() {
        "gone" => format!("no session has pid {} any more", seen.pid),
        "session" => {
            let times = began(Some(seen.backend_start), now.backend_start);
            format!("pid {} is another session: {times}", seen.pid)
        }
        "client" => other_client(seen, now),
        "transaction" => match (seen.xact_start.time(), now.xact_start) {
            (Some(_), None) => "its transaction has ended".to_owned(),
            (None, Some(at)) => format!("it has a transaction now: began {}", time(offset, at, TIME)),
            (was, is) => format!("its transaction has changed: {}", began(was, is)),
        },
        // Outside a transaction, any later statement may come from another client.
        "query" if seen.xact_start == ExpectedTime::Same(None) => {
            let times = began(seen.query_start.time(), now.query_start);
            format!("it has run another statement since: its last query {times}")
        }
        "state" => {
            let times = began(seen.state_change.time(), now.state_change);
            format!("it has run another statement since: its state {times}")
        }
        "moved" => "it ran a statement while its locks were read, and may have released its key".to_owned(),
        "query" => {
            format!("its query has changed: {}", began(seen.query_start.time(), now.query_start))
        }
        "work" => "the execution has ended, or another worker has it".to_owned(),
        "not_active" => {
            let state = now.state.as_deref().unwrap_or("in no state");
            format!("it runs no query: it is {state}, and a cancel has no effect")
        }
        "released" => match seen.holds {
            Some((tag, mode)) => {
                format!("it no longer holds {} on its {}", mode.as_str(), tag.locktype().as_str())
            }
            None => "it no longer holds its lock".to_owned(),
        },
        "in_transaction" => {
            "it was in a transaction at every try: not known whether the lock belongs to its session or to \
                             that transaction; try again"
                .to_owned()
        }
        "blocks_nobody" => "it no longer blocks any session".to_owned(),
        other => format!("it has changed ({other})"),
    }
}

/// `it serves another client by now: web-2, not web-1`.
fn other_client(seen: &SessionTarget, now: &SignalAnswer) -> String {
    let name = |name: Option<&str>| match name {
        Some(name) if !name.is_empty() => one_line(name).into_owned(),
        _ => "a client without a name".to_owned(),
    };
    let (was, is) = (name(seen.client.application.as_deref()), name(now.application.as_deref()));
    if was == is {
        return "it now serves another client: its role or its address has changed".to_owned();
    }
    format!("it now serves another client: {is}, not {was}")
}

/// `began 14:02:31, not 13:59:40`, with as many digits as the difference needs.
fn start_change(offset: FixedOffset, was: Option<Timestamp>, is: Option<Timestamp>) -> String {
    let both = |format| (was.map(|at| time(offset, at, format)), is.map(|at| time(offset, at, format)));
    let formats = [TIME, "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%.6f"];
    let difference = formats.into_iter().map(both).find(|(was, is)| was != is);
    let word = |time: Option<String>| time.unwrap_or_else(|| "never".to_owned());
    difference.map_or_else(String::new, |(was, is)| format!("began {}, not {}", word(is), word(was)))
}

fn time(offset: FixedOffset, at: Timestamp, format: &str) -> String {
    at.with_timezone(&offset).format(format).to_string()
}

const TIME: &str = "%H:%M:%S";

pub(super) fn unsent(signal: Signal) -> String {
    format!("{} returned false: the process has just ended, or does not accept it", signal.function())
}

/// Which privilege is missing. The rules are those of `pg_signal_backend()` in
/// `src/backend/storage/ipc/signalfuncs.c`. Only a superuser may signal a superuser's process or one that belongs to no
/// role; from version 18 a member of `pg_signal_autovacuum_worker` may signal an autovacuum worker; any other process may
/// be signalled by a role with the privileges of the process's role or of `pg_signal_backend`.
#[derive(Debug, Deserialize)]
struct SignalRights {
    role: String,
    version: u32,
    owner: Option<String>,
    owner_is_superuser: Option<bool>,
    kind: Option<String>,
}

pub(super) async fn signal(client: &Client, pid: i32, error: &Unanswered) -> String {
    match read_rights(client, pid).await {
        Some(rights) => format!("{error}; {}", rights.signal()),
        None => error.to_string(),
    }
}

/// For a session whose start is hidden from the role.
pub(super) async fn hidden(client: &Client, pid: i32) -> String {
    let role = read_rights(client, pid).await.map(|rights| rights.role);
    let role = role.as_deref().unwrap_or("CURRENT_ROLE");
    format!(
        "its start is hidden from role {role}, so it cannot be distinguished from another session: GRANT pg_read_all_stats TO {}",
        escape_identifier(role)
    )
}

/// `None` if the server does not answer; the message then does without it.
async fn read_rights(client: &Client, pid: i32) -> Option<SignalRights> {
    let rows = send(client, Access::ReadOnly, &sql::rights(pid)).await.ok()?;
    serde_json::from_str(rows.first()?).ok()
}

impl SignalRights {
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
    use crate::model::plan::Client;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn seen() -> SessionTarget {
        SessionTarget {
            pid: 7,
            backend_start: at("2026-01-01T09:00:00Z"),
            client: Client { application: Some("web-1".into()), ..Client::default() },
            xact_start: ExpectedTime::Same(Some(at("2026-01-01T13:59:40Z"))),
            query_start: ExpectedTime::Any,
            state_change: ExpectedTime::Any,
            holds: None,
            keeps: false,
            blocks: true,
        }
    }

    fn unseen() -> SignalAnswer {
        SignalAnswer {
            word: String::new(),
            sent: None,
            backend_start: None,
            xact_start: None,
            query_start: None,
            state_change: None,
            state: None,
            application: None,
        }
    }

    #[test]
    fn times_are_as_exact_as_the_difference_needs() {
        let offset = FixedOffset::east_opt(3600).unwrap();
        let answer = |xact_start: Option<&str>| SignalAnswer {
            word: "transaction".to_owned(),
            sent: None,
            backend_start: None,
            xact_start: xact_start.map(at),
            ..unseen()
        };
        for (now, expected) in [
            (Some("2026-01-01T14:02:31Z"), "its transaction has changed: began 15:02:31, not 14:59:40"),
            (
                Some("2026-01-02T13:59:40Z"),
                "its transaction has changed: began 2026-01-02 14:59:40, not 2026-01-01 14:59:40",
            ),
            (
                Some("2026-01-01T13:59:40.000001Z"),
                "its transaction has changed: began 2026-01-01 14:59:40.000001, not 2026-01-01 14:59:40.000000",
            ),
            (None, "its transaction has ended"),
        ] {
            assert_eq!(changed(offset, &seen(), &answer(now)), expected);
        }
    }

    #[test]
    fn an_idle_session_that_ran_a_statement_is_reported_as_changed() {
        let offset = FixedOffset::east_opt(0).unwrap();
        let (nine, ten) = (at("2026-01-01T09:00:00Z"), at("2026-01-01T10:00:00Z"));
        let idle = SessionTarget {
            xact_start: ExpectedTime::Same(None),
            query_start: ExpectedTime::Same(Some(nine)),
            state_change: ExpectedTime::Same(Some(nine)),
            ..seen()
        };
        let now = |word: &str, application: &str| SignalAnswer {
            word: word.to_owned(),
            query_start: Some(ten),
            state_change: Some(ten),
            application: Some(application.to_owned()),
            ..unseen()
        };
        for (target, word, application, expected) in [
            (
                &idle,
                "query",
                "web-1",
                "it has run another statement since: its last query began 10:00:00, not 09:00:00",
            ),
            (
                &idle,
                "state",
                "web-1",
                "it has run another statement since: its state began 10:00:00, not 09:00:00",
            ),
            (&idle, "client", "a\u{1b}[2J", "it now serves another client: a"),
            (&idle, "client", "", "it now serves another client: a client without a name, not web-1"),
            (&idle, "client", "web-1", "it now serves another client: its role or its address has changed"),
            (&idle, "moved", "web-1", "it ran a statement while its locks were read"),
        ] {
            let text = changed(offset, target, &now(word, application));
            assert!(text.starts_with(expected) && !text.contains('\u{1b}'), "{text}");
        }
        let query = SessionTarget { query_start: ExpectedTime::Same(Some(nine)), ..seen() };
        let text = changed(offset, &query, &now("query", "web-1"));
        assert_eq!(text, "its query has changed: began 10:00:00, not 09:00:00");
    }

    #[test]
    fn the_grant_that_helps_is_named() {
        let rights = |version, owner: Option<(&str, bool)>, kind: &str| SignalRights {
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
