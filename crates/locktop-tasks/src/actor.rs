//! The initiator of an action.

use serde::Serialize;

/// The initiator, as recorded in the audit: the tool and the user of this machine. The server adds the role and the
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    /// The operating system user; `None` if the user has no name.
    pub os_user: Option<String>,
    /// The role that the connection logs in as.
    pub role: String,
    /// The command or the screen, such as `locktop recover`.
    pub tool: String,
}

impl Actor {
    /// The user that runs this program, with a role of the server.
    #[must_use]
    pub fn of_process(tool: &str, role: &str) -> Self {
        Self { tool: tool.to_owned(), role: role.to_owned(), os_user: whoami::username().ok() }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (role {}", self.tool, self.role)?;
        if let Some(user) = &self.os_user {
            write!(f, ", OS user {user}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_is_tool_role_and_user() {
        let actor = |os_user: Option<&str>| Actor {
            tool: "locktop recover".to_owned(),
            role: "ops".to_owned(),
            os_user: os_user.map(str::to_owned),
        };
        assert_eq!(actor(Some("ann")).to_string(), "locktop recover (role ops, OS user ann)");
        assert_eq!(actor(None).to_string(), "locktop recover (role ops)");
    }
}
