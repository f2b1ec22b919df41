use std::io::{self, IsTerminal};

use super::super::args::{SnapshotArgs, SnapshotFormat};
use super::super::settings::Settings;
use super::{Failure, ask_again, look, say, watch};
use crate::app::print;
use crate::feed::once::{OnceError, once_learning};
use crate::model::view::View;
use crate::pg::poll::OpenError;
use crate::{text, wire};
use pg_connect::conninfo::ConnInfo;

/// Between attempts while the server has no free connection or is starting up.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

pub(super) async fn run(settings: Settings, arguments: &SnapshotArgs) -> Result<u8, Failure> {
    let SnapshotArgs { format, width, .. } = *arguments;
    let info = super::info(&settings)?;
    if let Some(interval) = arguments.watch {
        if format != SnapshotFormat::Json {
            return Err(Failure::Usage("--watch prints one line per snapshot: add --format json".to_owned()));
        }
        return Box::pin(watch::run(&settings, arguments, interval, info)).await;
    }
    let view = take(&settings, info).await?;
    let written = match format {
        SnapshotFormat::Json => wire::json::to_string(&view).transpose()?,
        SnapshotFormat::Table => table(&settings, &view, columns(width)),
    };
    super::print(&written.ok_or_else(|| Failure::Other("no snapshot could be taken".to_owned()))?)
}

/// Renders the table. ASCII only if requested, or for a terminal without UTF-8.
fn table(settings: &Settings, view: &View, columns: Option<usize>) -> Option<String> {
    let table = print::render(view, columns)?;
    if settings.ascii || (io::stdout().is_terminal() && look::is_ascii(settings)) {
        return Some(table.lines().map(text::ascii).collect::<Vec<_>>().join("\n"));
    }
    Some(table)
}

/// Width without a terminal, suitable for a message or a ticket.
const COLUMNS: usize = 100;

/// The width in columns. `None` is unlimited.
pub(super) fn columns(asked: Option<u16>) -> Option<usize> {
    let terminal = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    match asked {
        Some(0) => None,
        Some(columns) => Some(columns.into()),
        None => Some(terminal().unwrap_or(COLUMNS)),
    }
}

pub(super) async fn take(settings: &Settings, info: ConnInfo) -> Result<std::sync::Arc<View>, Failure> {
    let mut info = info;
    let mut said = String::new();
    loop {
        let learner = look::learner(settings, &info);
        let (limits, thresholds) = (look::limits(settings), settings.config.thresholds.clone());
        let taken = once_learning(&info, limits, thresholds, learner, look::redis(settings));
        let error = match Box::pin(taken).await {
            Ok(view) => return Ok(view),
            Err(error) => error,
        };
        match &error {
            OnceError::Open(open) if open.is_temporary() => {
                let reason = error.to_string();
                if reason != said {
                    say(&format!("{reason}; waiting"));
                    said = reason;
                }
                tokio::time::sleep(PAUSE).await;
            }
            OnceError::Open(OpenError::Connect(refused)) => info = ask_again(settings, &info, refused)?,
            _ => return Err(error.into()),
        }
    }
}
