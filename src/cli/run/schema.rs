use std::fmt::Write as _;

use super::super::password as confirm;
use super::super::settings::CliSettings;
use super::{Failure, may_write, open, status_line};
use crate::cli::schema::{PurgeArgs, SchemaCommand};
use crate::schema::{self, Contents, Found, LATEST, Object, Old, Schema, SchemaError, SchemaName, State};
use crate::text::{self, one_line};

pub(super) async fn run(settings: CliSettings, command: &SchemaCommand) -> Result<u8, Failure> {
    let asks = match command {
        SchemaCommand::Drop(arguments) => Some(("drop", arguments.yes)),
        SchemaCommand::Purge(arguments) => Some(("purge", arguments.yes)),
        _ => None,
    };
    if let Some((what, yes)) = asks {
        let what = format!("schema {what}");
        may_write(&settings, yes, [&what, &format!("{what} writes"), "--yes"])?;
    }
    let (mut connection, _) = open(&settings).await?;
    let client = &mut connection.client;
    let trusted =
        |name: &SchemaName| Schema { name: name.clone(), trusted_owners: settings.trusted_owners.clone() };
    let (said, status) = match command {
        SchemaCommand::Install(place) => (install(client, trusted(&place.schema)).await?, 0),
        SchemaCommand::Status(place) => {
            let state = schema::state(client, trusted(&place.schema)).await?;
            (describe(&state, &place.schema), u8::from(!state.is_current()))
        }
        SchemaCommand::Drop(arguments) => {
            drop_schema(client, trusted(&arguments.place.schema), arguments.yes).await?
        }
        SchemaCommand::Purge(arguments) => purge(client, trusted(&arguments.place.schema), arguments).await?,
        SchemaCommand::Print { schema } => (schema::script(schema), 0),
    };
    if !said.is_empty() {
        super::print(&said)?;
    }
    Ok(status)
}

async fn install(client: &mut tokio_postgres::Client, schema: Schema) -> Result<String, Failure> {
    let name = shown(&schema.name);
    let done = schema::install(client, schema).await?;
    let owner = ordinary_role(client).await?;
    let mut said = match done.from {
        Some(version) if version == done.to => {
            format!("The schema {name} has version {version}, the latest: nothing to do.")
        }
        Some(version) => {
            format!(
                "Upgraded the schema {name} from version {version} to {}: {} new objects.",
                done.to, done.made
            )
        }
        None => format!("Installed version {} into the new schema {name}: {} objects.", done.to, done.made),
    };
    said.push_str(&oddities(&done.odd));
    if let Some(owner) = owner {
        let owner = one_line(&owner).into_owned();
        let _ = write!(
            said,
            "\nIt belongs to {owner}. To monitor or act as another role, that role must trust the owner, whose functions run with its rights: \
             trusted_owners = [\"{owner}\"] in the config, or --trust-owner {owner}."
        );
    }
    Ok(said)
}

/// The current role, unless it is a superuser: objects of superusers are always trusted.
async fn ordinary_role(client: &tokio_postgres::Client) -> Result<Option<String>, Failure> {
    let sql = "SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolname = current_user AND NOT rolsuper";
    let rows = client.query_typed(sql, &[]).await.map_err(SchemaError::from)?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()))
}

fn describe(state: &State, schema: &SchemaName) -> String {
    let name = shown(schema);
    match state {
        State::Absent => format!("There is no schema {name}: run \"locktop schema install\"."),
        State::Foreign => format!("The schema {name} was not created by locktop."),
        State::Installed { version, objects } => {
            let made = objects.iter().filter(|object| object.found == Found::Made).count();
            let age = match version.cmp(&LATEST) {
                std::cmp::Ordering::Less => {
                    format!("older than {LATEST}: run \"locktop schema install\" to upgrade it")
                }
                std::cmp::Ordering::Equal => "the latest".to_owned(),
                std::cmp::Ordering::Greater => format!("newer than {LATEST}, which this locktop knows"),
            };
            format!("The schema {name} has version {version}, {age}; {made} objects.{}", oddities(objects))
        }
    }
}

fn oddities(objects: &[Object]) -> String {
    let mut text = String::new();
    for object in objects {
        let what = match object.found {
            Found::Made => continue,
            Found::Changed => "changed since the installation",
            Found::Missing => "is missing",
            Found::Foreign => "not created by locktop, ignored",
        };
        text += "\n  ";
        text += &one_line(&object.to_string());
        text += ": ";
        text += what;
    }
    text
}

fn shown(schema: &SchemaName) -> String {
    one_line(&schema.quoted()).into_owned()
}

async fn drop_schema(
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
            status_line("nothing was dropped");
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

async fn purge(
    client: &mut tokio_postgres::Client,
    place: Schema,
    arguments: &PurgeArgs,
) -> Result<(String, u8), Failure> {
    let name = shown(&place.name);
    let mut found = schema::purgeable(client, &place, arguments.keep).await?;
    found.retain(|old| arguments.only.is_empty() || arguments.only.contains(&old.log));
    if found.is_empty() {
        let text = "no retention is set: give --keep 30d, or ALTER \
                    DATABASE … SET locktop.keep_executions = '30 days' (also keep_queue, keep_audit)";
        return Err(Failure::Usage(text.to_owned()));
    }
    let lines: Vec<String> = found.iter().map(purged).collect();
    let total: i64 = found.iter().map(|old| old.rows).sum();
    if total == 0 {
        return Ok((format!("{}\nNothing to remove.", lines.join("\n")), 0));
    }
    if !arguments.yes {
        let question = format!("Remove {} from the schema {name}?", rows(total));
        if !confirm::ask(&lines, &question)? {
            status_line("nothing was removed");
            return Ok((String::new(), 1));
        }
    }
    let mut said = Vec::new();
    for old in found.iter().filter(|old| old.rows > 0) {
        let gone = schema::purge(client, &place, old.log, arguments.keep).await?;
        said.push(format!("{} of {}", rows(gone), old.log.table()));
    }
    Ok((format!("Removed {}.", said.join(", ")), 0))
}

fn purged(old: &Old) -> String {
    format!("{}: {} older than {}", old.log.table(), rows(old.rows), text::one_line(&old.keep))
}

fn rows(number: i64) -> String {
    let rows = if number == 1 { "row" } else { "rows" };
    format!("{} {rows}", text::count(number.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_lists_the_rows_that_would_be_dropped() {
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
