use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use pg_connect::conninfo::ConnInfo;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Failure, ask_again, configured, dashboard, open_any, report_waiting};
use crate::app::print;
use crate::cli::args::{LockOfArgs, SnapshotArgs, SnapshotFormat};
use crate::cli::settings::CliSettings;
use crate::feed::acting::{OpenConnection, leave};
use crate::feed::learn::{self, Learned, Learner, Way};
use crate::feed::live::{Live, PollControl};
use crate::feed::once::{OnceError, once_learning};
use crate::model::statement::{LONGEST, StatementPiece, statements};
use crate::model::view::{ConnectionState, View};
use crate::output::lock_of::{LockOfReport, LockOfState, Verdict, json, targets, text};
use crate::pg::lock_of::places;
use crate::pg::poll::OpenError;
use crate::runtime::signals::ending;
use crate::{output, text};

/// Between attempts while the server has no free connection or is starting up.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn run(settings: CliSettings, arguments: &SnapshotArgs) -> Result<u8, Failure> {
    let SnapshotArgs { format, width, .. } = *arguments;
    let info = super::info(&settings)?;
    if let Some(interval) = arguments.watch {
        if format != SnapshotFormat::Json {
            return Err(Failure::Usage("--watch prints one line per snapshot: add --format json".to_owned()));
        }
        return Box::pin(watch(&settings, arguments, interval, info)).await;
    }
    let view = take(&settings, info).await?;
    let written = match format {
        SnapshotFormat::Json => output::json::to_string(&view).transpose()?,
        SnapshotFormat::Table => table(&settings, &view, columns(width)),
    };
    super::print(&written.ok_or_else(|| Failure::Other("no snapshot could be taken".to_owned()))?)
}

/// Renders the table. ASCII only if requested, or for a terminal without UTF-8.
fn table(settings: &CliSettings, view: &View, columns: Option<usize>) -> Option<String> {
    let table = print::render(view, columns)?;
    if settings.ascii || (io::stdout().is_terminal() && configured::is_ascii(settings)) {
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

pub(super) async fn take(settings: &CliSettings, mut info: ConnInfo) -> Result<Arc<View>, Failure> {
    let mut said = String::new();
    loop {
        let learner = configured::learner(settings, &info);
        let (limits, thresholds) = (configured::limits(settings), settings.config.thresholds.clone());
        let taken = once_learning(&info, limits, thresholds, learner, configured::redis(settings));
        let error = match Box::pin(taken).await {
            Ok(view) => return Ok(view),
            Err(error) => error,
        };
        match &error {
            OnceError::Open(open) if open.is_temporary() => {
                report_waiting(&mut said, open);
                tokio::time::sleep(PAUSE).await;
            }
            OnceError::Open(OpenError::Connect(refused)) => info = ask_again(settings, &info, refused)?,
            _ => return Err(error.into()),
        }
    }
}

#[derive(Default)]
struct JsonLines {
    count: Option<u64>,
    changes: bool,
    with_events: bool,
    /// Snapshots so far, and the number of the last one written.
    snapshots: u64,
    written: u64,
    seq: u64,
    counted: Option<Arc<crate::model::snapshot::Snapshot>>,
    fingerprint: Option<u64>,
    event: u64,
    link: Option<ConnectionState>,
}

/// Prints one JSON line per snapshot until interrupted. A slow reader gets the newest snapshot and the number of missed
/// ones; nothing is buffered for it.
async fn watch(
    settings: &CliSettings,
    wanted: &SnapshotArgs,
    interval: Duration,
    info: ConnInfo,
) -> Result<u8, Failure> {
    let (names_in, names) = watch::channel(Learned::default());
    let (live, info) = dashboard::connect(settings, info, names, None).await?;
    let polling = Polling::start(live, configured::learner(settings, &info), interval, names_in);
    let mut views = polling.views.clone();
    let ending = ending()?;
    let ended = tokio::select! {
        written = write_all(wanted, &mut views) => written,
        // The reader has closed the pipe. A write would detect this only when there is something to write.
        () = reader_closed() => Ok(0),
        number = ending => Ok(128 + number),
    };
    polling.end().await;
    ended
}

/// The polls of a command without screens.
pub(super) struct Polling {
    pub(super) views: watch::Receiver<Arc<View>>,
    line: watch::Receiver<Option<OpenConnection>>,
    _interval: watch::Sender<Duration>,
    learning: JoinHandle<()>,
    feed: JoinHandle<()>,
}

impl Polling {
    pub(super) fn start(
        live: Live,
        learner: Learner,
        interval: Duration,
        names_in: watch::Sender<Learned>,
    ) -> Self {
        let (views_in, views) = watch::channel(live.view());
        let (interval, control) = PollControl::every(interval);
        Self {
            views,
            line: live.open_connection(),
            _interval: interval,
            learning: tokio::spawn(learn::keep(learner, Way::Own, learn::EVERY, names_in)),
            feed: tokio::spawn(live.run(control, views_in)),
        }
    }

    /// Ends the session in the server, and returns the last view.
    pub(super) async fn end(self) -> Arc<View> {
        self.learning.abort();
        let _ = self.learning.await;
        let (last, line) = (self.views.borrow().clone(), self.line.borrow().clone());
        leave(&last, line, None).await;
        self.feed.abort();
        let _ = self.feed.await;
        last
    }
}

/// Interval of the check whether the reader has closed the pipe.
const READER: Duration = Duration::from_millis(500);

/// Returns when the reader of standard output has closed the pipe.
async fn reader_closed() {
    loop {
        tokio::time::sleep(READER).await;
        let out = io::stdout();
        let mut polled = [PollFd::new(&out, PollFlags::empty())];
        let now = rustix::event::Timespec::default();
        if poll(&mut polled, Some(&now)).is_ok()
            && polled.iter().any(|out| out.revents().contains(PollFlags::ERR))
        {
            return;
        }
    }
}

async fn write_all(wanted: &SnapshotArgs, views: &mut watch::Receiver<Arc<View>>) -> Result<u8, Failure> {
    let SnapshotArgs { count, changes, events: with_events, .. } = *wanted;
    let mut lines = JsonLines { count, changes, with_events, ..JsonLines::default() };
    let mut writing: Option<JoinHandle<io::Result<()>>> = None;
    let mut view = None;
    loop {
        tokio::select! {
            changed = views.changed() => {
                if changed.is_err() {
                    return Err(Failure::Other("polling has ended".to_owned()));
                }
                let newest = views.borrow_and_update().clone();
                lines.take(&newest);
                view = Some(newest);
            }
            written = async { writing.as_mut()?.await.ok() }, if writing.is_some() => {
                writing = None;
                match written {
                    // The reader has closed the pipe.
                    Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
                    Some(Err(error)) => return Err(error.into()),
                    _ if lines.is_done() => return Ok(0),
                    _ => {}
                }
            }
        }
        if writing.is_none()
            && let Some(view) = view.take()
        {
            let text = lines.of(&view)?;
            if !text.is_empty() {
                writing = Some(tokio::task::spawn_blocking(move || {
                    let mut out = io::stdout().lock();
                    out.write_all(text.as_bytes())?;
                    out.flush()
                }));
            }
        }
    }
}

impl JsonLines {
    fn take(&mut self, view: &View) {
        if let Some(snapshot) = &view.snapshot
            && self.counted.as_ref().is_none_or(|counted| !Arc::ptr_eq(counted, snapshot))
        {
            self.counted = Some(Arc::clone(snapshot));
            self.snapshots += 1;
        }
    }

    fn is_done(&self) -> bool {
        self.count.is_some_and(|count| self.seq >= count)
    }

    fn of(&mut self, view: &View) -> Result<String, serde_json::Error> {
        let mut out = Vec::new();
        // Every failed attempt to connect produces a view.
        let state = |link: &ConnectionState| std::mem::discriminant(link);
        let is_new = self.link.as_ref().map(state) != Some(state(&view.link));
        if is_new && (self.link.is_some() || matches!(view.link, ConnectionState::Down { .. })) {
            out.push(output::json::link(&view.link)?);
        }
        self.link = Some(view.link.clone());
        if self.with_events {
            for event in view.events.iter().filter(|event| event.number >= self.event) {
                out.push(output::json::event(event)?);
            }
        }
        self.event = view.events.iter().next_back().map_or(self.event, |event| event.number + 1);
        out.extend(self.next_line(view)?);
        Ok(out.into_iter().map(|line| line + "\n").collect())
    }

    fn next_line(&mut self, view: &View) -> Result<Option<String>, serde_json::Error> {
        if self.snapshots == self.written || self.is_done() {
            return Ok(None);
        }
        let fingerprint = output::json::fingerprint(view);
        let is_change = self.fingerprint.replace(fingerprint) != Some(fingerprint);
        // Snapshots left out because nothing had changed do not count as skipped.
        let skipped = self.snapshots - self.written - 1;
        self.written = self.snapshots;
        if self.changes && !is_change {
            return Ok(None);
        }
        self.seq += 1;
        output::json::snapshot_line(view, self.seq, skipped).transpose()
    }
}

/// The exit status if the answer is unknown.
pub(super) const UNKNOWN: u8 = 3;

pub(super) fn offline(arguments: &LockOfArgs) -> Result<u8, Failure> {
    print(&LockOfReport::new(read(arguments)?, arguments.single_transaction, None), arguments)
}

/// Also reads the catalogs, to resolve names, and a snapshot of the current locks.
pub(super) async fn lock_of(settings: CliSettings, arguments: &LockOfArgs) -> Result<u8, Failure> {
    let pieces = read(arguments)?;
    let targets = targets(&pieces);
    let (connection, info) = Box::pin(open_any(&settings)).await?;
    let found = places(&connection.client, &targets).await?;
    drop(connection);
    let target = info.target();
    // Other job systems are not needed for table locks.
    let settings = CliSettings { adapters: Vec::new(), ..settings };
    let view = Box::pin(take(&settings, info)).await?;
    if let Some(error) = view.snapshot.as_deref().and_then(|snapshot| snapshot.locks.error.as_deref()) {
        return Err(Failure::Other(format!("the locks could not be read: {error}")));
    }
    let now = LockOfState { view, target, places: targets.into_iter().zip(found).collect() };
    print(&LockOfReport::new(pieces, arguments.single_transaction, Some(now)), arguments)
}

fn read(arguments: &LockOfArgs) -> Result<Vec<StatementPiece>, Failure> {
    let mut given = arguments.statement.clone();
    if given == "-" {
        given.clear();
        io::stdin().lock().take(LONGEST as u64 + 1).read_to_string(&mut given)?;
    }
    if given.len() > LONGEST {
        let why = format!("the text is longer than the {} kB that are read", LONGEST >> 10);
        return Err(Failure::Usage(why));
    }
    let found = statements(&given);
    if found.is_empty() { Err(Failure::Usage("it contains no statement".to_owned())) } else { Ok(found) }
}

fn print(report: &LockOfReport, arguments: &LockOfArgs) -> Result<u8, Failure> {
    super::print(&match arguments.format {
        SnapshotFormat::Json => json(report)?,
        SnapshotFormat::Table => text(report, columns(arguments.width)),
    })?;
    Ok(match report.verdict() {
        Verdict::Free => 0,
        Verdict::Waits => 1,
        Verdict::Unknown => UNKNOWN,
    })
}
