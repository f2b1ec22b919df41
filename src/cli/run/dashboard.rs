//! The dashboard. It connects before it takes the terminal, so that a failure is a plain line of text.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use locktop_base::file::{Folder, How};
use pg_connect::conninfo::ConnInfo;
use tokio::sync::watch;

use super::{Failure, ask_again, configured, env, report_waiting};
use crate::action::Executor;
use crate::action::audit::directory;
use crate::app::App;
use crate::app::message::Effect;
use crate::app::screens::Screen;
use crate::app::settings::SavedLayout;
use crate::cli::settings::CliSettings;
use crate::clock;
use crate::config::locate;
use crate::feed::acting::{ActingConnection, ActionConnections, leave};
use crate::feed::history::{self, History};
use crate::feed::learn::{self, Learned, Learner, Way};
use crate::feed::live::{self, Live, PollControl};
use crate::feed::record::redact::Redaction;
use crate::model::event::{EventKind, ExternalEvent};
use crate::model::finding::Severity;
use crate::model::lock_name::LockNames;
use crate::model::thresholds::ExpectedBlocker;
use crate::model::view::{TargetId, View};
use crate::pg::poll::{OpenError, PollLimits};
use crate::recording::container::RecordingInfo;
use crate::redis::watch as watch_redis;
use crate::runtime::{self, DashboardSource, Exit, signals, terminal};
use crate::text::one_line;

/// After a panic in a task, which has already printed its own message.
const ENDED: &str = "a part of the program ended unexpectedly; see its message above";

pub(super) async fn run(settings: CliSettings) -> Result<u8, Failure> {
    needs_terminal(ONE_SNAPSHOT)?;
    signals::end_the_screens();
    let info = super::info(&settings)?;
    let target = settings.target.clone().unwrap_or_else(|| info.target());
    Box::pin(show(&settings, info, target, None)).await
}

pub(super) const ONE_SNAPSHOT: &str = "\"locktop snapshot\" prints one snapshot and exits";

/// Fails before anything is started if there is no terminal, and names an alternative.
pub(super) fn needs_terminal(instead: &str) -> Result<(), Failure> {
    let why = match terminal::is_there() {
        true if std::env::var_os("TERM").is_none_or(|term| term != "dumb") => return Ok(()),
        true => "the dashboard needs a terminal with a cursor, and TERM is \"dumb\"",
        false => "the dashboard needs a terminal on standard input and output",
    };
    Err(Failure::Other(format!("{why}; {instead}")))
}

/// The demo whose server is shown.
pub(super) struct Demo {
    /// Text after the target in the header.
    pub(super) word: Option<String>,
    /// A suggestion to try first, in one line.
    pub(super) hint: String,
    /// Called when a question opens or closes: the demo waits while one is open.
    pub(super) asking: Box<dyn Fn(bool) + Send>,
}

/// Connects and shows the screens until the user quits.
pub(super) async fn show(
    settings: &CliSettings,
    info: ConnInfo,
    target: String,
    demo: Option<Demo>,
) -> Result<u8, Failure> {
    let theme = configured::theme(settings);
    // A demo neither restores nor saves the layout.
    let remembers = settings.config.remember && demo.is_none();
    let about = about(settings, &target);
    let mut app = app(settings, target, demo.as_ref().and_then(|demo| demo.word.clone()))?;
    if remembers {
        restore(&mut app, settings.screen);
    }
    let begun = SavedLayout::of(&app);
    if let Some(demo) = &demo {
        app.show_until_key(demo.hint.clone());
    }
    let (names_in, names) = watch::channel(Learned::default());
    let (mut live, info) = connect(settings, info, names, None).await?;
    let history = history(settings, &mut live)?;
    let (views_in, views) = watch::channel(live.view());
    let (interval, mut control) = PollControl::every(settings.refresh);
    let (shown, refresh) = (control.showing(), Arc::clone(&control.refresh));
    let expect = control.expecting(Arc::clone(&app.expected));
    let expected = expect.subscribe();
    let (acting, executor) = acting(settings, &info, &live, &views);
    let way = acting.as_ref().map_or(Way::Own, |acting| Way::Acting(Arc::clone(acting)));
    let learning = tokio::spawn(learn(configured::learner(settings, &info), way, names_in));
    let (last, poll, notes) = (views.clone(), live.open_connection(), live.event_sender());
    let feed = tokio::spawn(feed(live, control, views_in, views.clone()));
    let source = DashboardSource {
        views,
        asked: Box::new(move |effect| match effect {
            Effect::Refresh => refresh.notify_one(),
            Effect::SetInterval(seconds) => {
                interval.send_replace(Duration::from_secs_f64(seconds));
            }
            Effect::Watch(parts) => {
                shown.send_replace(parts);
            }
            Effect::Expect(entries) => {
                tracing::info!("[[expected]] entries are now: {}", entries.len());
                expect.send_replace(entries);
            }
            Effect::Note(text) => {
                notes.send(ExternalEvent {
                    kind: EventKind::Note,
                    severity: Severity::Info,
                    text,
                    subject: None,
                });
            }
            _ => {}
        }),
        executor,
        history,
        about,
        asking: Box::new(move |is_open| {
            if let Some(demo) = &demo {
                (demo.asking)(is_open);
            }
        }),
        leaving: Box::new(move |left| {
            if remembers && left != begun {
                keep(&left);
            }
        }),
    };
    let exit = Box::pin(runtime::run(app, theme, source)).await;
    print_expected(settings, &expected.borrow());
    // A message of the learner ends by setting everything again, so it must stop before `leave`.
    learning.abort();
    let _ = learning.await;
    let (last, poll) = (last.borrow().clone(), poll.borrow().clone());
    leave(&last, poll, acting.as_deref()).await;
    feed.abort();
    drop(acting);
    status(exit?)
}

/// The store of past snapshots. `None` if the history is off.
fn history(settings: &CliSettings, live: &mut Live) -> Result<Option<History>, Failure> {
    let limits = settings.config.history;
    if !limits.keep() {
        return Ok(None);
    }
    let (history_sender, history) =
        history::start(limits, TargetId::default(), settings.config.thresholds.clone())
            .map_err(|error| Failure::Other(format!("no thread to keep snapshots: {error}")))?;
    live.send_history_to(history_sender);
    Ok(Some(history))
}

/// The connection for actions and the executor of actions. The connection is opened at the start, because later all slots may be in use.
/// `None` if read-only.
fn acting(
    settings: &CliSettings,
    info: &ConnInfo,
    live: &Live,
    views: &watch::Receiver<Arc<View>>,
) -> (Option<Arc<ActingConnection>>, Option<Executor>) {
    if settings.read_only {
        return (None, None);
    }
    let acting = Arc::new(ActingConnection::keep(info.clone(), PollLimits::default(), views.clone()));
    tokio::spawn(configured::report_unfinished(info.clone(), live.event_sender()));
    let lines = ActionConnections { acting: Arc::clone(&acting), poll: live.open_connection() };
    let mut log = configured::audit_log(info, configured::actor(info), settings.trusted_owners.clone());
    let events = live.event_sender();
    log.send_event = Some(Box::new(move |event| events.send(event)));
    (Some(acting), Some(Executor::start(lines, log, configured::executor(settings, info))))
}

async fn learn(learner: Learner, way: Way, names_in: watch::Sender<Learned>) {
    tokio::select! {
        () = learn::keep(learner, way, learn::EVERY, names_in) => {}
        () = signals::panic_at_signal("learner") => {}
    }
}

/// Polls until it is aborted or the receiver of views is dropped.
async fn feed(
    live: Live,
    control: PollControl,
    views_in: watch::Sender<Arc<View>>,
    mut first: watch::Receiver<Arc<View>>,
) {
    let fault = async move {
        let _ = first.changed().await;
        drop(first);
        signals::panic_if_asked("feed");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = live.run(control, views_in) => {}
        () = fault => {}
    }
}

pub(super) fn status(exit: Exit) -> Result<u8, Failure> {
    tracing::info!("the screens ended: {exit:?}");
    match exit {
        Exit::Quit => Ok(0),
        Exit::Signal(number) => Ok(128 + number),
        Exit::Source => Err(Failure::Other(ENDED.to_owned())),
    }
}

pub(super) fn about(settings: &CliSettings, target: &str) -> RecordingInfo {
    RecordingInfo {
        program: concat!("locktop ", env!("CARGO_PKG_VERSION")).to_owned(),
        created: None,
        target: target.to_owned(),
        refresh: settings.refresh.as_secs_f64(),
        redaction: Redaction::None.as_str().to_owned(),
        thresholds: settings.config.thresholds.clone(),
    }
}

pub(super) fn app(settings: &CliSettings, target: String, note: Option<String>) -> Result<App, Failure> {
    let mut app = App::new(
        crate::app::AppSettings {
            target,
            keymap: configured::keymap(&settings.config)?,
            zone: clock::offset().into(),
            note,
            read_only: settings.read_only,
            history: settings.config.history.keep(),
            notify: settings.config.notify,
            expected: settings.config.thresholds.expected.as_slice().into(),
        },
        settings.refresh.as_secs_f64(),
    );
    app.screen = settings.screen.unwrap_or_default();
    if let Some(first) = app.panes().first() {
        app.focus = *first;
    }
    app.mouse = settings.mouse;
    Ok(app)
}

/// Longest wait for the names in a recorded snapshot.
const NAMES: Duration = Duration::from_secs(1);

/// Connects. Asks for a password if the server requires one, and retries while the server is temporarily unavailable.
pub(super) async fn connect(
    settings: &CliSettings,
    mut info: ConnInfo,
    names: watch::Receiver<Learned>,
    redaction: Option<Redaction>,
) -> Result<(Live, ConnInfo), Failure> {
    // With hidden names, no names are learned.
    let shows_names = !redaction.is_some_and(Redaction::hides_names);
    let mut limits = configured::limits(settings);
    if redaction.is_some() {
        // No screen waits for it, and a snapshot stored without its names never gets them.
        limits.name_timeout = NAMES;
    }
    let feed = live::FeedSettings {
        limits,
        thresholds: settings.config.thresholds.clone(),
        lock_names: if shows_names { configured::lock_names(settings) } else { LockNames::default() },
        learned: shows_names.then_some(names),
        server_load: Some(settings.config.server_load),
        redaction,
        // Redis is watched in parallel to the poll. The watch ends when its receiver is dropped.
        redis: configured::redis(settings)
            .filter(|_| shows_names)
            .map(|(servers, options)| watch_redis(servers, options).0),
        ..live::FeedSettings::default()
    };
    loop {
        let mut said = String::new();
        let waiting = Live::connect(info.clone(), feed.clone(), |error| report_waiting(&mut said, error));
        match waiting.await {
            Ok(live) => return Ok((live, info)),
            Err(OpenError::Connect(error)) => info = ask_again(settings, &info, &error)?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// A longer file was not written by locktop.
const LONGEST: u64 = 64 * 1024;

const FILE: &str = "layout.toml";

/// Restores the saved layout, except the screen if one is named. All errors of the layout are ignored: it is only a
/// convenience.
pub(super) fn restore(app: &mut App, named: Option<Screen>) {
    let Some(place) = directory(&env).filter(|place| place.is_dir()) else { return };
    let Ok(file) = Folder::open(&place).and_then(|folder| folder.file(FILE, How::Existing)) else { return };
    let mut text = String::new();
    if file.take(LONGEST + 1).read_to_string(&mut text).is_ok_and(|length| length as u64 <= LONGEST) {
        app.lay_out(SavedLayout::parse(&text), named);
    }
}

/// Replaces the whole file. If two dashboards end at the same time, one layout is kept.
pub(super) fn keep(layout: &SavedLayout) {
    let Some(place) = directory(&env) else { return };
    let Ok(folder) = Folder::open(&place) else { return };
    let _ = folder.replace(FILE, layout.text().as_bytes());
}

/// Prints the entries that still apply and are not in the config. An error is ignored: the terminal may be closed.
pub(super) fn print_expected(settings: &CliSettings, expected: &[ExpectedBlocker]) {
    let Some(entries) = made(&settings.config.thresholds.expected, expected) else { return };
    let default = || locate(None, &env).map(|location| location.path);
    let file = settings.config.path.clone().or_else(default).unwrap_or_else(|| "config.toml".into());
    let file = one_line(&file.display().to_string()).into_owned();
    let mut out = io::stdout().lock();
    let _ = write!(out, "# add to {file}:\n{entries}").and_then(|()| out.flush());
}

fn made(config: &[ExpectedBlocker], expected: &[ExpectedBlocker]) -> Option<String> {
    let made = expected.iter().filter(|entry| !config.contains(entry));
    let entries: Vec<String> = made.map(ExpectedBlocker::toml).collect();
    (!entries.is_empty()).then(|| entries.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn only_new_entries_are_printed_and_the_config_reads_them() {
        let [old, first, second] = ["old", "b \"\u{1b}", "a"]
            .map(|name| ExpectedBlocker { user: Some(name.into()), ..ExpectedBlocker::default() });
        let config = [old.clone()];
        assert_eq!(made(&config, &config), None);
        assert_eq!(made(&config, &[]), None);
        let text = made(&config, &[old, first.clone(), second.clone()]).unwrap();
        let read = Config::parse(&text, Path::new("")).unwrap();
        assert_eq!(read.thresholds.expected, [first, second]);
    }
}
