//! What a role needs for what it is to do to the rows of a schema.

use crate::schema::SchemaName;

/// The SQLSTATE `insufficient_privilege`.
pub(crate) const FORBIDDEN: &str = "42501";

/// What a role is to do. Sessions are another matter: [`crate::model::plan::Rights::lacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// See which executions would be recovered.
    Plan,
    /// Recover orphans.
    Recover,
    /// End the sessions of slow ones as well. (Those of a superuser need a superuser.)
    Terminate,
    /// Put an item of the work queue back, or set it aside.
    Queue,
    /// End a lease of somebody else.
    Unlock,
    /// Enable or disable a task, or make it due.
    Schedule,
}

/// The statements that give a role what it needs. Functions may be executed by everybody, as they were installed.
#[must_use]
pub fn grants(schema: &SchemaName, role: &str, need: Need) -> Vec<String> {
    let (name, quoted) = (schema.quoted(), quoted(role));
    let mut all = vec![format!("GRANT USAGE ON SCHEMA {name} TO {quoted}")];
    let mut grant = |rights: &str, tables: &str| all.push(format!("GRANT {rights} ON {tables} TO {quoted}"));
    let log = format!("{name}.scheduled_tasks, {name}.task_execution_log");
    match need {
        Need::Plan => grant("SELECT", &format!("{log}, {name}.running_tasks")),
        Need::Recover | Need::Terminate => {
            grant("SELECT", &format!("{log}, {name}.running_tasks"));
            grant("UPDATE", &log);
        }
        Need::Queue => grant("SELECT, UPDATE", &format!("{name}.task_queue")),
        Need::Unlock => grant("SELECT, UPDATE", &format!("{name}.distributed_lock")),
        Need::Schedule => grant("SELECT, UPDATE", &format!("{name}.scheduled_tasks")),
    }
    if need != Need::Plan {
        all.extend(audit(schema, role).into_iter().skip(1));
    }
    if need == Need::Terminate {
        all.push(format!("GRANT pg_read_all_stats, pg_signal_backend TO {quoted}"));
    }
    all
}

/// The statements that let a role add to the record.
pub(super) fn audit(schema: &SchemaName, role: &str) -> Vec<String> {
    let (name, role) = (schema.quoted(), quoted(role));
    vec![
        format!("GRANT USAGE ON SCHEMA {name} TO {role}"),
        format!("GRANT SELECT, INSERT ON {name}.locktop_audit TO {role}"),
        format!("GRANT USAGE ON SEQUENCE {name}.locktop_audit_id_seq TO {role}"),
    ]
}

fn quoted(role: &str) -> String {
    postgres_protocol::escape::escape_identifier(role)
}
