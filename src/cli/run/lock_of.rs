use std::io::{self, Read};

use super::super::args::{LockOfArgs, SnapshotFormat};
use super::super::settings::Settings;
use super::{Failure, open_any, snapshot};
use crate::model::statement::{LONGEST, Piece, statements};
use crate::pg::lock_of::places;
use crate::wire::lock_of::{Now, Report, Verdict, json, targets, text};

/// The exit status if the answer is unknown.
pub(super) const UNKNOWN: u8 = 3;

pub(super) fn offline(arguments: &LockOfArgs) -> Result<u8, Failure> {
    print(&Report::new(read(arguments)?, arguments.single_transaction, None), arguments)
}

/// Also reads the catalogs, to resolve names, and a snapshot of the current locks.
pub(super) async fn run(settings: Settings, arguments: &LockOfArgs) -> Result<u8, Failure> {
    let pieces = read(arguments)?;
    let targets = targets(&pieces);
    let (connection, info) = Box::pin(open_any(&settings)).await?;
    let found = places(&connection.client, &targets).await;
    let found = found.map_err(|error| Failure::Other(error.to_string()))?;
    drop(connection);
    let target = info.target();
    // Other job systems are not needed for table locks.
    let settings = Settings { adapters: Vec::new(), ..settings };
    let view = Box::pin(snapshot::take(&settings, info)).await?;
    if let Some(error) = view.snapshot.as_deref().and_then(|snapshot| snapshot.locks.error.as_deref()) {
        return Err(Failure::Other(format!("the locks could not be read: {error}")));
    }
    let now = Now { view, target, places: targets.into_iter().zip(found).collect() };
    print(&Report::new(pieces, arguments.single_transaction, Some(now)), arguments)
}

fn read(arguments: &LockOfArgs) -> Result<Vec<Piece>, Failure> {
    let mut given = arguments.statement.clone();
    if given == "-" {
        given.clear();
        io::stdin().lock().take(LONGEST as u64 + 1).read_to_string(&mut given)?;
    }
    if given.len() > LONGEST {
        return Err(Failure::Usage(format!(
            "the text is longer than the {} kB that are read",
            LONGEST >> 10
        )));
    }
    let found = statements(&given);
    if found.is_empty() { Err(Failure::Usage("it contains no statement".to_owned())) } else { Ok(found) }
}

fn print(report: &Report, arguments: &LockOfArgs) -> Result<u8, Failure> {
    super::print(&match arguments.format {
        SnapshotFormat::Json => json(report)?,
        SnapshotFormat::Table => text(report, snapshot::columns(arguments.width)),
    })?;
    Ok(match report.verdict() {
        Verdict::Free => 0,
        Verdict::Waits => 1,
        Verdict::Unknown => UNKNOWN,
    })
}
