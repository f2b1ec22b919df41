//! The screens on a terminal: keys and views in, frames and effects out.

pub mod signals;
pub mod terminal;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{DisableMouseCapture, Event, EventStream};
use crossterm::{clipboard, execute};
use futures_util::StreamExt;
use rustix::process::Signal as Raise;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::signals::ProcessSignal::{self, End};
use self::terminal::{ReportMouse, TerminalOutput, TerminalScreen};
use crate::action::{self, Executor, ExecutorOrder, ExecutorReply};
use crate::app::App;
use crate::app::message::{Effect, Message};
use crate::app::settings::SavedLayout;
use crate::clock;
use crate::feed::history::{History, Reply};
use crate::model::view::{ConnectionState, View};
use crate::recording::container::RecordingInfo;
use crate::ui::layout::Viewport;
use crate::ui::theme::Theme;

/// How long a row has to be under the cursor before a shortcut acts on it, unless a key put the cursor there.
const SETTLES: Duration = Duration::from_millis(500);

/// At most 30 frames a second.
const FRAME: Duration = Duration::from_millis(33);

const NO_SHELL: &str = "no shell to return to: locktop was not started from one";

pub struct DashboardSource {
    pub views: watch::Receiver<Arc<View>>,
    /// Takes the effects on the source: what and when it polls, notes, and the blockers to expect.
    pub asked: Box<dyn Fn(Effect) + Send>,
    /// Executes confirmed actions; `None` if actions are not possible.
    pub executor: Option<Executor>,
    /// The kept snapshots; `None` if none are kept.
    pub history: Option<History>,
    pub about: RecordingInfo,
    /// Reports whether a question is open or a confirmed action is not finished.
    pub asking: Box<dyn Fn(bool) + Send>,
    /// Receives the layout of the screens when the operator quits.
    pub leaving: Box<dyn Fn(SavedLayout) + Send>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Quit,
    Signal(u8),
    /// The source of views ended, or another part of the program panicked. Neither should happen.
    Source,
}

/// The terminal was closed, which also sends SIGHUP.
const HANGUP: Exit = Exit::Signal(1);

struct Loop {
    app: App,
    theme: Theme,
    screen: TerminalScreen,
    viewport: Viewport,
    events: Option<EventStream>,
    source: DashboardSource,
    answered_at: std::time::Instant,
    dirty: bool,
    /// A frame was drawn and not yet reported to the screens.
    fresh: bool,
}

/// Runs the screens until they end. The terminal is restored in any case.
pub async fn run(app: App, theme: Theme, source: DashboardSource) -> io::Result<Exit> {
    let mut signals = signals::listen()?;
    let exit = Box::pin(show(app, theme, source, &mut signals)).await;
    terminal::give_back();
    match exit {
        Err(error) => reason(error, &mut signals).await,
        exit => exit,
    }
}

/// Why reading or drawing failed. If the terminal is closed, no error can be shown; the signal that reports it can arrive
/// after the failure.
async fn reason(error: io::Error, signals: &mut mpsc::UnboundedReceiver<ProcessSignal>) -> io::Result<Exit> {
    match tokio::time::timeout(Duration::from_millis(200), signals.recv()).await {
        Ok(Some(End(number))) => Ok(Exit::Signal(number)),
        _ if terminal::is_closed() => Ok(HANGUP),
        _ => Err(error),
    }
}

async fn show(
    app: App,
    theme: Theme,
    source: DashboardSource,
    signals: &mut mpsc::UnboundedReceiver<ProcessSignal>,
) -> io::Result<Exit> {
    let screen = terminal::take(app.mouse)?;
    let mut state = Loop {
        app,
        theme,
        screen,
        viewport: Viewport::default(),
        events: Some(EventStream::new()),
        source,
        answered_at: clock::monotonic(),
        dirty: true,
        fresh: false,
    };
    let size = state.screen.size()?;
    state.app.update(Message::Resize(size.width, size.height));
    let exit = state.run(signals).await;
    if matches!(exit, Ok(Exit::Quit)) {
        (state.source.leaving)(SavedLayout::of(&state.app));
    }
    exit
}

/// Never returns without a source.
async fn next<T>(answer: Option<impl Future<Output = T>>) -> T {
    match answer {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Before the screen is dropped, which would write to the terminal and panic if that fails.
        terminal::give_back();
    }
}

impl Loop {
    async fn run(&mut self, signals: &mut mpsc::UnboundedReceiver<ProcessSignal>) -> io::Result<Exit> {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut frame_due = Instant::from_std(clock::monotonic());
        let mut settling = (None, frame_due);
        loop {
            let exchange = self.app.pane(self.app.focus).unsettled();
            if settling.0 != exchange {
                settling = (exchange, Instant::from_std(clock::monotonic()) + SETTLES);
            }
            let Some(events) = &mut self.events else { return Ok(Exit::Quit) };
            // All available input is processed before a frame is drawn.
            tokio::select! {
                biased;
                () = signals::continued() => return Ok(Exit::Source),
                Some(signal) = signals.recv() => match signal {
                    End(number) => return Ok(Exit::Signal(number)),
                    ProcessSignal::Stop => self.suspend()?,
                    ProcessSignal::Continue => self.resume()?,
                },
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        match event {
                            Event::Resize(..) => terminal::read_again(),
                            Event::Key(_) if self.app.is_asking() => self.measure()?,
                            _ => {}
                        }
                        if let Some(message) = terminal::message(event, &self.viewport)
                            && let Some(exit) = self.message(message)?
                        {
                            return Ok(exit);
                        }
                    }
                    Some(Err(error)) => return Err(error),
                    None => return Ok(HANGUP),
                },
                changed = self.source.views.changed() => {
                    if changed.is_err() {
                        return Ok(Exit::Source);
                    }
                    let view = Arc::clone(&self.source.views.borrow_and_update());
                    if view.link == ConnectionState::Live && self.app.is_news(&view) {
                        self.answered_at = clock::monotonic();
                    }
                    if let Some(executor) = &self.source.executor {
                        self.app.own_pids = executor.own_pids();
                    }
                    self.message(Message::View(view.target, view))?;
                }
                answer = next(self.source.executor.as_mut().map(Executor::answer)) => {
                    let message = match answer {
                        Some(answer) => self.answered(answer),
                        None => return Ok(Exit::Source),
                    };
                    self.message(message)?;
                }
                reply = next(self.source.history.as_mut().map(History::answer)) => {
                    let message = match reply {
                        Reply::View(answer) => Message::Past(answer.map_err(|why| why.to_string())),
                        Reply::Saved(said) => Message::Saved(said),
                    };
                    self.message(message)?;
                }
                _ = ticks.tick() => {
                    let silence = (clock::monotonic() - self.answered_at).as_secs_f64();
                    self.message(Message::Tick(silence))?;
                }
                () = tokio::time::sleep_until(settling.1), if exchange.is_some() => {
                    self.message(Message::Settled(exchange.unwrap_or_default()))?;
                }
                () = tokio::time::sleep_until(frame_due), if self.dirty => {
                    self.draw()?;
                    frame_due = Instant::from_std(clock::monotonic()) + FRAME;
                }
                // Keys that arrived while the frame was drawn were pressed before the operator saw it.
                () = tokio::time::sleep_until(frame_due), if self.fresh && !self.dirty => {
                    if terminal::has_unread() {
                        frame_due = Instant::from_std(clock::monotonic()) + FRAME;
                    } else {
                        self.fresh = false;
                        self.message(Message::Drawn(self.viewport.dialog))?;
                    }
                }
            }
        }
    }

    fn message(&mut self, message: Message) -> io::Result<Option<Exit>> {
        let update = self.app.update(message);
        (self.source.asking)(self.app.is_asking());
        self.dirty |= update.redraw;
        for effect in update.effects {
            match effect {
                Effect::Quit => return Ok(Some(Exit::Quit)),
                Effect::Suspend => self.suspend()?,
                Effect::Clear => self.clear()?,
                Effect::Refresh
                | Effect::SetInterval(_)
                | Effect::Watch(_)
                | Effect::Note(_)
                | Effect::Expect(_) => (self.source.asked)(effect),
                Effect::Go { from, step } => {
                    if let Some(history) = &self.source.history {
                        history.go(from, step);
                    }
                }
                Effect::Play(speed) => {
                    if let Some(history) = &self.source.history {
                        history.play(speed);
                    }
                }
                Effect::Save(path) => {
                    if let Some(history) = &self.source.history {
                        history.save(path, self.source.about.clone());
                    }
                }
                Effect::Copy(text) => {
                    execute!(TerminalOutput, clipboard::CopyToClipboard::to_clipboard_from(text))?;
                }
                Effect::Alert(ways, text) => {
                    let in_tmux = std::env::var_os("TMUX").is_some();
                    TerminalOutput.write_all(terminal::sequences(ways, &text, in_tmux).as_bytes())?;
                    TerminalOutput.flush()?;
                }
                Effect::Title(text) => terminal::title(&text)?,
                Effect::Mouse(true) => execute!(TerminalOutput, ReportMouse)?,
                Effect::Mouse(false) => execute!(TerminalOutput, DisableMouseCapture)?,
                Effect::Order(order) => self.order(order)?,
            }
        }
        Ok(None)
    }

    /// A key may overtake the signal of a new size, in which its question was not seen: then it is no answer.
    fn measure(&mut self) -> io::Result<()> {
        let size = self.screen.size()?;
        if (size.width, size.height) != self.app.size {
            self.message(Message::Resize(size.width, size.height))?;
        }
        Ok(())
    }

    fn order(&mut self, order: ExecutorOrder) -> io::Result<()> {
        let answer = match &self.source.executor {
            Some(executor) => executor.order(order),
            None => Some(action::refuse(&order, "no action is possible in read-only mode")),
        };
        if let Some(answer) = answer {
            let message = self.answered(answer);
            self.message(message)?;
        }
        Ok(())
    }

    /// Converts an answer of the executor. After a command, polls at once, because everything can be different.
    fn answered(&self, answer: ExecutorReply) -> Message {
        if matches!(answer, ExecutorReply::Reported(_)) {
            (self.source.asked)(Effect::Refresh);
        }
        Message::Answer(answer)
    }

    /// Clears the screen, so that the next frame draws everything. `Terminal::clear` would ask the terminal for its cursor and
    /// wait for the answer.
    fn clear(&mut self) -> io::Result<()> {
        let size = self.screen.size()?;
        self.screen.resize(size.into())
    }

    fn draw(&mut self) -> io::Result<()> {
        self.dirty = false;
        // A task that panicked has restored the terminal and written its message there.
        if !terminal::is_taken() {
            return Ok(());
        }
        signals::panic_if_asked("screen");
        let (app, viewport, theme) = (&self.app, &mut self.viewport, &self.theme);
        self.screen.draw(|frame| crate::ui::render(frame, app, viewport, theme))?;
        self.app.page_rows = self.viewport.page_rows;
        self.app.table_rows = self.viewport.table_rows.max(1);
        self.fresh = self.app.awaits_frame();
        Ok(())
    }

    /// Gives the terminal to the shell, and takes it again when the program is continued. Does not stop if no shell could
    /// continue it.
    fn suspend(&mut self) -> io::Result<()> {
        if !signals::has_shell() {
            self.dirty |= self.app.show_note(NO_SHELL).redraw;
            return Ok(());
        }
        // Its thread would continue to read the shell's keys.
        self.events = None;
        terminal::give_back();
        // The whole job stops, as it does when the terminal itself sends the signal.
        rustix::process::kill_current_process_group(Raise::STOP)?;
        self.resume()
    }

    fn resume(&mut self) -> io::Result<()> {
        terminal::enter(self.app.mouse)?;
        if let Some(title) = self.app.title() {
            terminal::title(title)?;
        }
        if self.events.is_none() {
            self.events = Some(EventStream::new());
        }
        let size = self.screen.size()?;
        self.app.update(Message::Resize(size.width, size.height));
        self.clear()?;
        self.dirty = true;
        Ok(())
    }
}
