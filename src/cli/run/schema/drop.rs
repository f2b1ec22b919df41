use super::super::super::confirm;
use super::super::{Failure, say};
use super::shown;
use crate::schema::{self, Contents, Schema};
use crate::text;

pub(super) async fn run(
    client: &mut tokio_postgres::Client,
    schema: Schema,
    yes: bool,
) -> Result<(String, u8), Failure> {
    let name = shown(&schema.name);
    let Some(contents) = schema::contents(client, schema.clone()).await? else {
        return Ok((format!("There is no schema {name}: nothing to do."), 0));
    };
    if !yes {
        let question = format!("Type {} to drop it:", schema.name.as_str());
        if !confirm::ask_for(&question_lines(&name, &contents), &question, schema.name.as_str())? {
            say("nothing was dropped");
            return Ok((String::new(), 1));
        }
    }
    let Some(removed) = schema::remove(client, schema).await? else {
        return Ok((format!("There is no schema {name}: nothing to do."), 0));
    };
    let rows: Vec<String> =
        removed.rows.iter().map(|(table, rows)| format!("{rows} rows of {table}")).collect();
    let rows = if rows.is_empty() { String::new() } else { format!(", with {}", rows.join(", ")) };
    let said = format!(
        "Dropped the schema {name}, version {}, and its {} objects{rows}.",
        removed.version, removed.objects
    );
    Ok((said, 0))
}

fn question_lines(name: &str, contents: &Contents) -> Vec<String> {
    let Contents { version, objects, rows } = contents;
    let mut lines =
        vec![format!("The schema {name}, version {version}: {objects} objects would be dropped, with")];
    let count = |rows: i64| text::count(rows.unsigned_abs());
    let width = rows.iter().map(|(_, rows)| count(*rows).len()).max().unwrap_or_default();
    lines.extend(rows.iter().map(|(table, rows)| format!("  {:>width$} rows of {table}", count(*rows))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_what_would_be_gone() {
        let rows = vec![("scheduled_tasks".to_owned(), 7), ("task_execution_log".to_owned(), 1234)];
        let contents = Contents { version: 5, objects: 80, rows };
        assert_eq!(
            question_lines("\"locktop\"", &contents),
            [
                "The schema \"locktop\", version 5: 80 objects would be dropped, with",
                "      7 rows of scheduled_tasks",
                "  1,234 rows of task_execution_log",
            ]
        );
    }
}
