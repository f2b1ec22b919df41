use crate::message::Unanswered;
use crate::schema::SchemaName;

/// Why there is no plan. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    /// A standby does not see the primary's locks.
    #[error("a standby cannot recover tasks or show which are running: connect to the primary")]
    Standby,
    /// No schema of locktop's has this name.
    #[error("this database has no schema {} of locktop{}", .schema.quoted(), remedy(.others, .printed))]
    NoSchema {
        /// The requested name.
        schema: SchemaName,
        /// Schemas of locktop's with other names.
        others: Vec<String>,
        /// Schemas with task tables that are not locktop's.
        printed: Vec<String>,
    },
    /// A schema of this name that locktop did not create.
    #[error("the schema {} was not created by locktop{}", .schema.quoted(), remedy(.others, .printed))]
    Foreign {
        /// The requested name.
        schema: SchemaName,
        /// Schemas of locktop's with other names.
        others: Vec<String>,
        /// Schemas with task tables that are not locktop's.
        printed: Vec<String>,
    },
    /// An older version of locktop's schema, without the functions for recovery.
    #[error("the schema {} is too old for this: run \"locktop schema install\" to upgrade it", .0.quoted())]
    Old(SchemaName),
    /// No task has the name that was given.
    #[error("no task \"{name}\" in the schema {}", .schema.quoted())]
    NoTask {
        /// The schema that was searched.
        schema: SchemaName,
        /// The requested name of a task (`task_name`).
        name: String,
    },
    /// The role lacks a privilege for reading (SQLSTATE `42501`).
    #[error("{message}; what the role needs: {grants}")]
    Forbidden {
        /// The server's message, with its SQLSTATE, in one line.
        message: String,
        /// The GRANT statements that are needed, separated by semicolons.
        grants: String,
    },
    /// The server refuses for another reason, or is unreachable.
    #[error("{0}")]
    Server(String),
    /// The server's answer cannot be read.
    #[error("an execution cannot be read: {0}")]
    Unreadable(String),
}

impl RecoverError {
    pub(super) fn of(error: &Unanswered, schema: &SchemaName, role: &str, need: RecoveryNeed) -> Self {
        match error {
            Unanswered::Refused { code, .. } if code == FORBIDDEN => {
                Self::Forbidden { message: error.to_string(), grants: grants(schema, role, need).join("; ") }
            }
            _ => Self::Server(error.to_string()),
        }
    }
}

fn remedy(others: &[String], printed: &[String]) -> String {
    if let [name, ..] = others {
        let more = if others.len() > 1 { " among others" } else { "" };
        return format!(": there is one named \"{name}\"{more} (--schema)");
    }
    let mut text = ": run \"locktop schema install\"".to_owned();
    if let [name, ..] = printed {
        text.push_str("; for the tables in \"");
        text.push_str(name);
        text.push_str("\" use --schema ");
        text.push_str(name);
    }
    text
}

/// The SQLSTATE of `insufficient_privilege`.
pub(super) const FORBIDDEN: &str = "42501";

/// The action that a role needs privileges for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoveryNeed {
    /// To see what would be done: read the tasks and the running executions.
    Plan,
    /// To close executions whose session has ended, and record that in the audit.
    Recover,
    /// To terminate the sessions of slow ones as well. (Those of a superuser need a superuser.)
    Terminate,
}

/// The statements that grant a role what it needs. Functions are executable by PUBLIC, as they were installed.
#[must_use]
pub fn grants(schema: &SchemaName, role: &str, need: RecoveryNeed) -> Vec<String> {
    let (name, role) = (schema.quoted(), postgres_protocol::escape::escape_identifier(role));
    let tables = format!("{name}.scheduled_tasks, {name}.task_execution_log");
    let mut all = vec![
        format!("GRANT USAGE ON SCHEMA {name} TO {role}"),
        format!("GRANT SELECT ON {tables}, {name}.running_tasks TO {role}"),
    ];
    if need >= RecoveryNeed::Recover {
        all.push(format!("GRANT UPDATE ON {tables} TO {role}"));
        all.extend(record_grants(schema, &role));
    }
    if need >= RecoveryNeed::Terminate {
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
