//! The privilege that a role lacks for an action on a schema, as the statement that grants it.

use postgres_protocol::escape::escape_identifier;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::SchemaError;
use locktop_locks::SchemaName;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Install the schema in a database, or upgrade it.
    Install,
    /// Read the version, and whether it is complete.
    Look,
    /// Actions that only the owner may take, such as dropping it or removing old rows.
    Own,
}

#[derive(Debug)]
struct Situation {
    role: String,
    database: String,
    /// `None` if there is no such schema.
    owner: Option<String>,
}

/// The same result; if the server did not permit it, with the statements that are needed.
pub(super) async fn explained<T>(
    client: &Client,
    schema: &SchemaName,
    need: Need,
    done: Result<T, SchemaError>,
) -> Result<T, SchemaError> {
    match done {
        Err(SchemaError::Forbidden { message, needs }) if needs.is_empty() => {
            // The refusal matters more than the reason why it cannot be explained.
            let needs = look(client, schema).await.map(|it| it.needs(schema, need));
            Err(SchemaError::Forbidden { message, needs: needs.unwrap_or_default() })
        }
        done => done,
    }
}

async fn look(client: &Client, schema: &SchemaName) -> Option<Situation> {
    let sql = "SELECT current_user::pg_catalog.text, pg_catalog.current_database()::pg_catalog.text,
                      (SELECT pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text FROM pg_catalog.pg_namespace AS n
                        WHERE n.nspname OPERATOR(pg_catalog.=) $1)";
    let rows = client.query_typed(sql, &[(&schema.as_str(), Type::TEXT)]).await.ok()?;
    let row = rows.first()?;
    Some(Situation {
        role: row.try_get(0).ok()?,
        database: row.try_get(1).ok()?,
        owner: row.try_get(2).ok()?,
    })
}

impl Situation {
    fn needs(&self, schema: &SchemaName, need: Need) -> String {
        let (name, role) = (schema.quoted(), escape_identifier(&self.role));
        match (need, &self.owner) {
            (Need::Install, None) => {
                format!("GRANT CREATE ON DATABASE {} TO {role}", escape_identifier(&self.database))
            }
            (Need::Install | Need::Own, Some(owner)) => {
                let owner = escape_identifier(owner);
                format!("it belongs to {owner}: connect as that role, or GRANT {owner} TO {role}")
            }
            (Need::Look | Need::Own, _) => format!(
                "GRANT USAGE ON SCHEMA {name} TO {role}; \
                 GRANT SELECT ON {name}.locktop_schema, {name}.locktop_objects TO {role}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_named() {
        let schema = SchemaName::new("a b").unwrap();
        let of = |owner: Option<&str>, need| {
            let situation = Situation {
                role: "on \"call\"".to_owned(),
                database: "shop".to_owned(),
                owner: owner.map(ToOwned::to_owned),
            };
            situation.needs(&schema, need)
        };
        let role = "\"on \"\"call\"\"\"";
        assert_eq!(of(None, Need::Install), format!("GRANT CREATE ON DATABASE \"shop\" TO {role}"));
        let owner = format!("it belongs to \"app\": connect as that role, or GRANT \"app\" TO {role}");
        assert_eq!(of(Some("app"), Need::Install), owner);
        assert_eq!(of(Some("app"), Need::Own), owner);
        let look = format!(
            "GRANT USAGE ON SCHEMA \"a b\" TO {role}; GRANT SELECT ON \"a b\".locktop_schema, \"a b\".locktop_objects TO {role}"
        );
        assert_eq!(of(Some("app"), Need::Look), look);
    }
}
