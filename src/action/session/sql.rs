use std::net::IpAddr;

use crate::action::message::{is, moment, number, text};
use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::plan::{Client, ExpectedTime, SessionTarget, Signal};
use crate::text::one_line;
use locktop_tasks::sql::{fill, without_comments};

const SIGNAL: &str = include_str!("../../../assets/sql/signal.sql");

pub(in crate::action) struct SignalGuards {
    /// Statements that run first: they fail if the table is not trusted.
    pub(in crate::action) guard: String,
    pub(in crate::action) is_seen: String,
}

pub(super) fn signal(signal: Signal, target: &SessionTarget, work: Option<&SignalGuards>) -> String {
    let not_active = match signal {
        Signal::Cancel => "t.state IS DISTINCT FROM 'active'",
        Signal::Terminate => "false",
    };
    let (yes, no) = (|| "true".to_owned(), || "false".to_owned());
    let keeps = target.holds.filter(|_| target.keeps);
    // A statement can release it in the middle of a transaction.
    let holds_key = target.holds.is_some_and(|(tag, _)| tag.locktype() == LockType::Advisory);
    let other_client = if target.keeps { no() } else { other_client(&target.client) };
    let pieces = [
        ("$backend_start", moment(Some(target.backend_start))),
        ("$other_client", other_client),
        ("$other_transaction", differs("t.xact_start", target.xact_start)),
        ("$other_query", differs("t.query_start", target.query_start)),
        ("$other_state", differs("t.state_change", target.state_change)),
        ("$other_work", work.map_or_else(no, |work| format!("({}) IS NOT TRUE", work.is_seen))),
        ("$holds_key", (holds_key && !target.keeps).to_string()),
        ("$not_active", not_active.to_owned()),
        ("$reads_locks", (target.blocks || target.holds.is_some()).to_string()),
        ("$conflicts", conflicts()),
        ("$holds", target.holds.map_or_else(yes, |(tag, mode)| holds(tag, mode))),
        ("$keeps", keeps.map_or_else(yes, |(tag, mode)| keeps_sql(target.pid, tag, mode))),
        ("$blocks", target.blocks.to_string()),
        ("$signal", signal.function().to_owned()),
        ("$pid", target.pid.to_string()),
    ];
    // The planner does not know the number of locks: a nested loop over fifty thousand would take a minute.
    let guard = work.map_or("", |work| work.guard.as_str());
    let sql = format!("{guard}SET LOCAL enable_nestloop = off;\n{}", without_comments(SIGNAL));
    fill(&sql, &pieces)
}

/// Whether another client uses the session, as far as the server shows.
fn other_client(seen: &Client) -> String {
    let mut differ = Vec::new();
    if let Some(name) = seen.comparable_application() {
        differ.push(format!("NOT ({})", is("t.application_name", name)));
    }
    let address = seen.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
    let address = address.map_or_else(|| "NULL".to_owned(), |address| format!("'{address}'::inet"));
    differ.push(format!("t.usesysid IS DISTINCT FROM {}", number(seen.usesysid)));
    differ.push(format!("t.client_addr IS DISTINCT FROM {address}"));
    differ.push(format!("t.client_port IS DISTINCT FROM {}", number(seen.port)));
    differ.join(" OR ")
}

pub(in crate::action) fn short(signal: Signal, target: &SessionTarget) -> String {
    let mut line = format!("{}({}) if", signal.function(), target.pid);
    let mut condition = |words: String| {
        if !line.ends_with(" if") {
            line.push_str(" and");
        }
        line.push(' ');
        line.push_str(&words);
    };
    condition(format!("backend_start = {}", literal(Some(target.backend_start))));
    for (column, seen) in [
        ("xact_start", target.xact_start),
        ("query_start", target.query_start),
        ("state_change", target.state_change),
    ] {
        if let ExpectedTime::Same(at) = seen {
            condition(format!("{column} = {}", literal(at)));
        }
    }
    let application = target.client.application.as_deref().filter(|_| !target.keeps);
    if let Some(name) = application.filter(|name| !name.is_empty()) {
        condition(format!("application_name = {}", text(&one_line(name))));
    }
    if signal == Signal::Cancel {
        condition("it is active".to_owned());
    }
    if let Some((tag, mode)) = target.holds {
        let of_session = if target.keeps { " lock of its session" } else { "" };
        let key =
            tag.advisory_key().filter(|_| target.keeps).map(|key| format!(" {key}")).unwrap_or_default();
        let kind = tag.locktype().as_str();
        condition(format!("it holds {} on its {kind}{of_session}{key}", mode.as_str()));
    }
    if target.blocks {
        condition("it blocks a session".to_owned());
    }
    line
}

fn literal(at: Option<Timestamp>) -> String {
    at.map_or_else(
        || "NULL".to_owned(),
        |at| format!("'{}'", at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)),
    )
}

fn differs(column: &str, seen: ExpectedTime) -> String {
    match seen {
        ExpectedTime::Same(at) => format!("{column} IS DISTINCT FROM {}", moment(at)),
        ExpectedTime::Any => "false".to_owned(),
    }
}

/// Pairs of a requested mode and a held mode that conflict.
fn conflicts() -> String {
    let pairs = LockMode::ALL.into_iter().flat_map(|asked| {
        asked.conflicts().iter().map(move |held| format!("('{}', '{}')", asked.as_str(), held.as_str()))
    });
    pairs.collect::<Vec<_>>().join(", ")
}

/// By the session itself or by one of its parallel workers.
fn holds(tag: LockTag, mode: LockMode) -> String {
    format!(
        "EXISTS (SELECT FROM locks AS l JOIN own AS o ON o.pid = l.pid WHERE l.granted AND l.mode = {} AND l.tag = {})",
        text(mode.as_str()),
        text(&text_of(tag)),
    )
}

/// Whether the session holds an advisory lock at session level: it holds the lock outside a transaction (the lock's
/// transaction number is 0), or another session has waited for the lock since before the session's transaction began.
/// The release of an exclusive lock would have granted it to that session.
fn keeps_sql(pid: i32, tag: LockTag, mode: LockMode) -> String {
    let (mode_text, tag) = (text(mode.as_str()), text(&text_of(tag)));
    let is_exclusive = mode == LockMode::Exclusive;
    format!(
        "(EXISTS (SELECT FROM locks AS l WHERE l.pid = {pid} AND l.granted AND l.mode = {mode_text} AND l.tag = {tag} \
         AND l.virtualtransaction LIKE '%/0') \
         OR {is_exclusive} AND EXISTS (SELECT FROM locks AS w JOIN members AS m ON m.pid = {pid} AND w.waitstart < m.xact_start \
         WHERE NOT w.granted AND w.tag = {tag} AND w.pid NOT IN (SELECT o.pid FROM own AS o)))"
    )
}

/// A tag in the form that the statement uses: numbers are signed if the server's column is signed.
fn text_of(tag: LockTag) -> String {
    let number = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    let columns = [
        tag.locktype().as_str().to_owned(),
        number(tag.database().map(i64::from)),
        number(tag.relation().map(i64::from)),
        number(tag.page().map(|page| i64::from(page.cast_signed()))),
        number(tag.tuple().map(|tuple| i64::from(tuple.cast_signed()))),
        tag.virtualxid().map_or_else(String::new, |xid| xid.to_string()),
        number(tag.transactionid().map(i64::from)),
        number(tag.classid().map(i64::from)),
        number(tag.objid().map(i64::from)),
        number(tag.objsubid().map(|number| i64::from(number.cast_signed()))),
    ];
    columns.join("/")
}

pub(super) fn watch(pids: &[i32]) -> String {
    let pids = pids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    format!(
        "SELECT json_build_object('pid', a.pid, 'backend_start', a.backend_start, 'query_start', a.query_start, \
         'state', a.state) FROM pg_stat_get_activity(NULL) AS a WHERE a.pid = ANY ('{{{pids}}}'::int[])"
    )
}

pub(super) fn rights(pid: i32) -> String {
    format!(
        "SELECT json_build_object('role', current_user, 'version', current_setting('server_version_num')::int, \
         'owner', r.rolname, 'owner_is_superuser', r.rolsuper, 'kind', a.backend_type) \
         FROM (SELECT 1) AS one \
         LEFT JOIN pg_stat_get_activity({pid}) AS a ON true LEFT JOIN pg_roles AS r ON r.oid = a.usesysid"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(application: &str) -> SessionTarget {
        let at = "2026-01-01T09:00:00Z".parse::<Timestamp>().unwrap();
        SessionTarget {
            pid: 4312,
            backend_start: at,
            client: Client {
                application: Some(application.into()),
                address: Some("[local]".into()),
                ..Client::default()
            },
            xact_start: ExpectedTime::Same(None),
            query_start: ExpectedTime::Same(Some(at)),
            state_change: ExpectedTime::Any,
            holds: None,
            keeps: false,
            blocks: false,
        }
    }

    #[test]
    fn a_statement_has_no_name_left_in_it() {
        for name in ["web", "$pid $holds", "o'hare\\", "\u{1b}[2J"] {
            let sql = signal(Signal::Terminate, &target(name), None);
            assert!(sql.contains("pg_terminate_backend(v.pid)"), "{sql}");
            let rest = sql.replace(&text(name), "");
            assert!(!rest.contains('$'), "{rest}");
            assert!(sql.contains(&text(name)), "{sql}");
            let short = short(Signal::Terminate, &target(name));
            assert!(!short.contains('\u{1b}') && short.contains("application_name = "), "{short}");
        }
    }

    #[test]
    fn an_unreadable_application_name_is_not_compared() {
        let sql = signal(Signal::Terminate, &target("caf\u{fffd}"), None);
        assert!(!sql.contains("t.application_name"), "{sql}");
        assert!(signal(Signal::Terminate, &target("web"), None).contains("t.application_name"));
        assert!(
            sql.contains("t.usesysid IS DISTINCT FROM NULL OR t.client_addr IS DISTINCT FROM NULL"),
            "{sql}"
        );
        let mut tcp = target("web");
        tcp.client.address = Some("fe80::1".into());
        assert!(
            signal(Signal::Terminate, &tcp, None).contains("t.client_addr IS DISTINCT FROM 'fe80::1'::inet")
        );
    }
}
