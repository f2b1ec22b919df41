use crate::schema::SchemaName;

/// The SQLSTATE of `insufficient_privilege`.
pub(super) const FORBIDDEN: &str = "42501";

/// The action that a role needs privileges for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// To see what would be done: read the tasks and the running executions.
    Plan,
    /// To close executions whose session has ended, and record that in the audit.
    Recover,
    /// To terminate the sessions of slow ones as well. (Those of a superuser need a superuser.)
    Terminate,
}

/// The statements that grant a role what it needs. Functions are executable by PUBLIC, as they were installed.
#[must_use]
pub fn grants(schema: &SchemaName, role: &str, need: Need) -> Vec<String> {
    let (name, role) = (schema.quoted(), postgres_protocol::escape::escape_identifier(role));
    let tables = format!("{name}.scheduled_tasks, {name}.task_execution_log");
    let mut all = vec![
        format!("GRANT USAGE ON SCHEMA {name} TO {role}"),
        format!("GRANT SELECT ON {tables}, {name}.running_tasks TO {role}"),
    ];
    if need >= Need::Recover {
        all.push(format!("GRANT UPDATE ON {tables} TO {role}"));
        all.extend(record_grants(schema, &role));
    }
    if need >= Need::Terminate {
        all.push(format!("GRANT pg_read_all_stats, pg_signal_backend TO {role}"));
    }
    all
}

/// The statements that let a role, a quoted name, add to the record in a schema that it may use.
#[must_use]
pub fn record_grants(schema: &SchemaName, role: &str) -> [String; 2] {
    let name = schema.quoted();
    [
        format!("GRANT SELECT, INSERT ON {name}.locktop_audit TO {role}"),
        format!("GRANT USAGE ON SEQUENCE {name}.locktop_audit_id_seq TO {role}"),
    ]
}
