use super::super::super::confirm;
use super::super::{Failure, say};
use super::shown;
use crate::cli::schema::PurgeArgs;
use crate::schema::{self, Old, Schema};
use crate::text;

pub(super) async fn run(
    client: &mut tokio_postgres::Client,
    place: Schema,
    arguments: &PurgeArgs,
) -> Result<(String, u8), Failure> {
    let name = shown(&place.name);
    let mut found = schema::purgeable(client, &place, arguments.keep).await?;
    found.retain(|old| arguments.only.is_empty() || arguments.only.iter().any(|only| only.log() == old.log));
    if found.is_empty() {
        let text = "no retention is set: give --keep 30d, or ALTER \
                    DATABASE … SET locktop.keep_executions = '30 days' (also keep_queue, keep_audit)";
        return Err(Failure::Usage(text.to_owned()));
    }
    let lines: Vec<String> = found.iter().map(line).collect();
    let total: i64 = found.iter().map(|old| old.rows).sum();
    if total == 0 {
        return Ok((format!("{}\nNothing to remove.", lines.join("\n")), 0));
    }
    if !arguments.yes {
        let question = format!("Remove {} from the schema {name}?", rows(total));
        if !confirm::ask(&lines, &question)? {
            say("nothing was removed");
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

fn line(old: &Old) -> String {
    format!("{}: {} older than {}", old.log.table(), rows(old.rows), text::one_line(&old.keep))
}

fn rows(number: i64) -> String {
    let rows = if number == 1 { "row" } else { "rows" };
    format!("{} {rows}", text::count(number.unsigned_abs()))
}
