//! `locktop adapters`: which job systems of others there are, and whether a file describes one.

use std::io::{self, Write};
use std::sync::Arc;

use super::super::adapters::{AdaptersCheckArgs, AdaptersCommand};
use super::super::args::SnapshotFormat;
use super::super::settings::Settings;
use super::{Failure, open};
use crate::config::adapter::read_adapter;
use crate::model::adapter::{Adapter, Installation};
use crate::pg::adapters::survey;
use crate::wire;

pub(super) async fn run(settings: Settings, asked: &AdaptersCommand) -> Result<u8, Failure> {
    match asked {
        AdaptersCommand::List(arguments) => {
            let found = look(&settings, &settings.adapters).await?;
            print(&found, &settings.adapters, arguments.format)?;
            Ok(0)
        }
        AdaptersCommand::Check(arguments) => check(&settings, arguments).await,
    }
}

/// Looks for mistakes in a file alone.
pub(super) fn check_file(arguments: &AdaptersCheckArgs) -> Result<u8, Failure> {
    let adapter = Arc::new(read_adapter(&arguments.file)?);
    let mut out = io::stdout().lock();
    match arguments.format {
        SnapshotFormat::Json => print(&[], &[adapter], arguments.format)?,
        SnapshotFormat::Table => writeln!(out, "{}: no mistakes", arguments.file.display())?,
    }
    out.flush()?;
    Ok(0)
}

async fn check(settings: &Settings, arguments: &AdaptersCheckArgs) -> Result<u8, Failure> {
    let adapters = [Arc::new(read_adapter(&arguments.file)?)];
    let found = look(settings, &adapters).await?;
    print(&found, &adapters, arguments.format)?;
    let is_read = |installation: &Installation| {
        installation.refused.is_none()
            && installation
                .choices
                .iter()
                .all(|choice| choice.used().is_some_and(|used| !matches!(used.read, Some(Err(_)))))
    };
    Ok(u8::from(found.is_empty() || !found.iter().all(is_read)))
}

async fn look(settings: &Settings, adapters: &[Arc<Adapter>]) -> Result<Vec<Installation>, Failure> {
    let (connection, _) = Box::pin(open(settings)).await?;
    let found = Box::pin(survey(&connection.client, &settings.trusted_owners, adapters)).await;
    found.map_err(|error| Failure::Other(error.to_string()))
}

fn print(found: &[Installation], adapters: &[Arc<Adapter>], format: SnapshotFormat) -> Result<(), Failure> {
    let text = match format {
        SnapshotFormat::Json => {
            wire::json::adapters(found, adapters).map_err(|error| Failure::Other(error.to_string()))?
        }
        SnapshotFormat::Table => wire::table::adapters(found, adapters),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    out.flush()?;
    Ok(())
}
