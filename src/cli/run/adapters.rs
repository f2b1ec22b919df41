use std::path::Path;
use std::sync::Arc;

use super::super::args::SnapshotFormat;
use super::super::settings::CliSettings;
use super::{Failure, open};
use crate::cli::schema::{AdaptersCheckArgs, AdaptersCommand};
use crate::config::Position;
use crate::config::adapter::{read_adapter, section};
use crate::model::adapter::{Adapter, Installation, Template};
use crate::output;
use crate::pg::jobs::adapters::survey;

pub(super) async fn run(settings: CliSettings, asked: &AdaptersCommand) -> Result<u8, Failure> {
    match asked {
        AdaptersCommand::List(arguments) => {
            let found = search(&settings, &settings.adapters).await?;
            print(&found, &settings.adapters, arguments.format)
        }
        AdaptersCommand::Check(arguments) => check(&settings, arguments).await,
    }
}

pub(super) fn check_file(arguments: &AdaptersCheckArgs) -> Result<u8, Failure> {
    let adapter = Arc::new(read_adapter(&arguments.file)?);
    match arguments.format {
        SnapshotFormat::Json => print(&[], &[adapter], arguments.format),
        SnapshotFormat::Table => super::print(&format!("{}: no mistakes", arguments.file.display())),
    }
}

async fn check(settings: &CliSettings, arguments: &AdaptersCheckArgs) -> Result<u8, Failure> {
    let adapters = [Arc::new(read_adapter(&arguments.file)?)];
    let found = search(settings, &adapters).await?;
    print(&found, &adapters, arguments.format)?;
    if arguments.format == SnapshotFormat::Table {
        if found.is_empty() {
            super::print(&format!(
                "{}: no mistakes found in the file; its tables were not found here.",
                arguments.file.display()
            ))?;
        }
        print_places(&found, &arguments.file)?;
    }
    let is_read = |installation: &Installation| {
        installation.refused.is_none()
            && installation
                .choices
                .iter()
                .all(|choice| choice.used().is_some_and(|used| !matches!(used.read, Some(Err(_)))))
            && installation.actions.iter().all(|action| action.outcome.is_ok())
    };
    Ok(u8::from(found.is_empty() || !found.iter().all(is_read)))
}

/// Prints the file position of each mistake that the server found:
/// `mailer.toml:23:10: [[jobs.running]]: column j.kin does not exist`.
fn print_places(found: &[Installation], file: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)?;
    let mut lines = Vec::new();
    for installation in found {
        let adapter = &installation.adapter;
        for choice in &installation.choices {
            let queries: Vec<_> = adapter.queries.iter().filter(|query| query.part == choice.part).collect();
            for tried in &choice.tried {
                let query = tried.number.checked_sub(1).and_then(|at| queries.get(at));
                let of = (section(choice.part), query.map(|query| &query.sql), tried.at);
                lines.extend(tried.refusal().map(|why| place(file, &text, of, why)));
            }
        }
        for tried in &installation.actions {
            let of = (
                format!("[actions.{}]", tried.kind.as_str()),
                adapter.action(tried.kind, tried.number).map(|action| &action.sql),
                tried.at,
            );
            lines.extend(tried.outcome.as_ref().err().map(|why| place(file, &text, of, why)));
        }
    }
    lines.dedup();
    if !lines.is_empty() {
        super::print(&lines.join("\n"))?;
    }
    Ok(())
}

/// A mistake with its position: within the statement if known, otherwise its start.
fn place(
    file: &Path,
    text: &str,
    (section, template, at): (String, Option<&Template>, Option<usize>),
    why: &str,
) -> String {
    let source = template.map(Template::source).unwrap_or_default();
    let begins = text.find(&source).unwrap_or_default();
    let within = at.and_then(|at| source.char_indices().nth(at)).map_or(0, |(at, _)| at);
    let position = Position::of(text, begins + within);
    let why = crate::text::one_line(why);
    format!("{}:{}:{}: {section}: {why}", file.display(), position.line, position.column)
}

async fn search(settings: &CliSettings, adapters: &[Arc<Adapter>]) -> Result<Vec<Installation>, Failure> {
    let (connection, _) = Box::pin(open(settings)).await?;
    Ok(Box::pin(survey(&connection.client, &settings.trusted_owners, adapters)).await?)
}

fn print(found: &[Installation], adapters: &[Arc<Adapter>], format: SnapshotFormat) -> Result<u8, Failure> {
    super::print(&match format {
        SnapshotFormat::Json => output::json::adapters(found, adapters)?,
        SnapshotFormat::Table => output::table::adapters(found, adapters),
    })
}
