//! Checks the privileges of a worker's role at the start, before a task fails for lack of one.

use postgres_protocol::escape::escape_identifier;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::OpenError;
use super::source::Source;
use locktop_locks::SchemaName;

/// Tables and sequences, with the privileges needed whenever there is work.
const TASKS: [(&str, &str); 6] = [
    ("scheduled_tasks", "SELECT"),
    ("scheduled_tasks", "UPDATE"),
    ("task_execution_log", "SELECT"),
    ("task_execution_log", "INSERT"),
    ("task_execution_log", "UPDATE"),
    ("task_execution_log_id_seq", "USAGE"),
];
const QUEUE: [(&str, &str); 2] = [("task_queue", "SELECT"), ("task_queue", "UPDATE")];

pub(super) const ROLE: &str = "SELECT current_user::pg_catalog.text";

/// A privilege on some of the columns is enough, for roles with column grants.
const LACKS: &str = "SELECT current_user::pg_catalog.text, w.what || ' on ' || w.name
  FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[])) WITH ORDINALITY AS w (name, what, place)
  JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
  JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name
 WHERE NOT CASE WHEN c.relkind = 'S' THEN pg_catalog.has_sequence_privilege(c.oid, w.what)
                ELSE pg_catalog.has_any_column_privilege(c.oid, w.what) END
 ORDER BY w.place";

pub(super) async fn check(client: &Client, schema: &SchemaName, sources: &[Source]) -> Result<(), OpenError> {
    let wanted = sources.iter().flat_map(|source| wanted(*source));
    let (names, rights): (Vec<&str>, Vec<&str>) = wanted.copied().unzip();
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
        [(&schema.as_str(), Type::TEXT), (&names, Type::TEXT_ARRAY), (&rights, Type::TEXT_ARRAY)];
    let rows = client.query_typed(LACKS, &values).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let (role, first): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let more = if rows.len() > 1 { format!(" and {} more rights", rows.len() - 1) } else { String::new() };
    let message = format!("role {} has no {first}{more}", escape_identifier(&role));
    Err(OpenError::Forbidden { message, needs: needs(schema, &role, sources) })
}

fn wanted(source: Source) -> &'static [(&'static str, &'static str)] {
    match source {
        Source::Tasks => &TASKS,
        Source::Queue => &QUEUE,
    }
}

/// The GRANT statements for everything that a worker needs, including what it only does after a crash.
pub(super) fn needs(schema: &SchemaName, role: &str, sources: &[Source]) -> String {
    let (name, role) = (schema.quoted(), escape_identifier(role));
    let mut tables = Vec::new();
    for source in sources {
        tables.extend(match source {
            Source::Tasks => &["scheduled_tasks", "task_execution_log"][..],
            Source::Queue => &["task_queue"][..],
        });
    }
    let full =
        |tables: &[&str]| tables.iter().map(|table| format!("{name}.{table}")).collect::<Vec<_>>().join(", ");
    tables.push("locktop_workers");
    let added: &[&str] = if sources.contains(&Source::Tasks) {
        &["task_execution_log", "locktop_audit", "locktop_workers"]
    } else {
        &["locktop_audit", "locktop_workers"]
    };
    [
        format!("GRANT USAGE ON SCHEMA {name} TO {role}"),
        format!("GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}"),
        format!("GRANT UPDATE ON {} TO {role}", full(&tables)),
        format!("GRANT INSERT ON {} TO {role}", full(added)),
        format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {role}"),
    ]
    .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_needs_its_own_tables() {
        let of = |sources: &[Source]| needs(&SchemaName::default(), "w", sources);
        assert_eq!(
            of(&[Source::Queue]),
            "GRANT USAGE ON SCHEMA \"locktop\" TO \"w\"; GRANT SELECT ON ALL TABLES IN SCHEMA \"locktop\" TO \"w\"; \
             GRANT UPDATE ON \"locktop\".task_queue, \"locktop\".locktop_workers TO \"w\"; \
             GRANT INSERT ON \"locktop\".locktop_audit, \"locktop\".locktop_workers TO \"w\"; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA \"locktop\" TO \"w\""
        );
        let both = of(&Source::ALL);
        assert!(both.contains("GRANT UPDATE ON \"locktop\".scheduled_tasks, \"locktop\".task_execution_log, \"locktop\".task_queue, "));
        assert!(
            both.contains("GRANT INSERT ON \"locktop\".task_execution_log, \"locktop\".locktop_audit, \"locktop\".locktop_workers TO")
        );
    }
}
