mod drop;
mod purge;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use super::super::settings::{Settings, SettingsError};
use super::{Failure, open};
use crate::cli::schema::SchemaCommand;
use crate::schema::{self, Found, LATEST, Object, Schema, SchemaError, SchemaName, State};
use crate::text::one_line;

impl From<SchemaError> for Failure {
    fn from(error: SchemaError) -> Self {
        Self::Other(one_line(&error.to_string()).into_owned())
    }
}

pub(super) async fn run(settings: Settings, command: &SchemaCommand) -> Result<u8, Failure> {
    refuse(&settings, command)?;
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
            drop::run(client, trusted(&arguments.place.schema), arguments.yes).await?
        }
        SchemaCommand::Purge(arguments) => {
            purge::run(client, trusted(&arguments.place.schema), arguments).await?
        }
        SchemaCommand::Print { schema } => (schema::script(schema), 0),
    };
    if !said.is_empty() {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", said.trim_end())?;
        out.flush()?;
    }
    Ok(status)
}

fn refuse(settings: &Settings, command: &SchemaCommand) -> Result<(), SettingsError> {
    let (what, yes) = match command {
        SchemaCommand::Drop(arguments) => ("drop", arguments.yes),
        SchemaCommand::Purge(arguments) => ("purge", arguments.yes),
        SchemaCommand::Install(_) | SchemaCommand::Status(_) | SchemaCommand::Print { .. } => return Ok(()),
    };
    if settings.read_only {
        return Err(SettingsError::Usage(format!("this target is read-only, and schema {what} writes")));
    }
    if !yes && !io::stdin().is_terminal() {
        let text =
            format!("schema {what} asks before it acts, and there is no terminal to ask on: use --yes");
        return Err(SettingsError::Usage(text));
    }
    Ok(())
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
