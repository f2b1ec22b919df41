use super::grants::{Need, grants};
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
    pub(super) fn of(error: &Unanswered, schema: &SchemaName, role: &str, need: Need) -> Self {
        match error {
            Unanswered::Refused { code, .. } if code == super::grants::FORBIDDEN => {
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
