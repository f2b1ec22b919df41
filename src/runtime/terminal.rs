use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crossterm::{Command, cursor, event, execute, style, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::termios::{self, OptionalActions};

use super::alert;
use super::frame::FrameWriter;

pub type Screen = Terminal<CrosstermBackend<FrameWriter<Output>>>;

/// Time limit for restoring a terminal that may not be read.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether locktop has taken the terminal. A second restore, from a panic and from the end of the program, must do nothing.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether the terminal must not be taken again, because it shows the message of a panic.
static LEFT_ALONE: AtomicBool = AtomicBool::new(false);

static TITLED: AtomicBool = AtomicBool::new(false);

/// Sets the window title; the old title is restored with the terminal.
pub(super) fn title(text: &str) -> io::Result<()> {
    let is_first = !TITLED.swap(true, Ordering::SeqCst);
    Output.write_all(alert::title(text, is_first).as_bytes())?;
    Output.flush()
}

pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether the terminal was closed; then no error can be shown.
pub(super) fn is_gone() -> bool {
    rustix::termios::tcgetattr(io::stdout()).is_err()
}

pub(super) fn has_unread() -> bool {
    rustix::io::ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0)
}

/// Makes crossterm read keys that arrived together with a size change. crossterm reports only the size: it waits for new
/// input (`src/event/source/unix/mio.rs` of crossterm 0.29), and the keys are no longer new. Setting the unchanged terminal
/// attributes wakes all readers (`n_tty_set_termios` in Linux's `drivers/tty/n_tty.c`).
pub(super) fn read_again() {
    if has_unread()
        && let Ok(attributes) = termios::tcgetattr(io::stdin())
    {
        // On failure, the keys are read together with the next one.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &attributes);
    }
}

/// Asks the terminal to report buttons and the wheel (xterm's modes 1000 and 1006, "Mouse Tracking" in its ctlseqs), but
/// not every movement as `EnableMouseCapture` does, which would wake the program for nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportMouse;

impl Command for ReportMouse {
    fn write_ansi(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str("\x1b[?1000h\x1b[?1006h")
    }
}

/// The terminal while locktop has taken it. Later output is discarded, so that nothing is drawn over the message of a panic
/// in another thread.
#[derive(Debug)]
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Restoring takes this lock too, so it cannot happen between the check and the write.
        let mut out = io::stdout().lock();
        if is_taken() {
            out.write_all(bytes)?;
            out.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the terminal: raw mode, the alternate screen, bracketed paste and, if requested, the mouse.
pub fn take(mouse: bool) -> io::Result<Screen> {
    enter(mouse)?;
    Terminal::new(CrosstermBackend::new(FrameWriter::new(Output)))
}

/// Takes the terminal, also after it was restored, or after the program was stopped without a chance to restore it and the
/// shell has changed its modes. After a panic the terminal is left alone.
pub(super) fn enter(mouse: bool) -> io::Result<()> {
    // The theme resolves the palette: on its own, crossterm would answer NO_COLOR by removing bold and reverse, and with them
    // the selection.
    style::force_color_output(true);
    if LEFT_ALONE.load(Ordering::SeqCst) {
        return Ok(());
    }
    // If raw mode is assumed to be on, enabling it does nothing.
    terminal::disable_raw_mode()?;
    terminal::enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    let mut out = io::stdout();
    execute!(out, terminal::EnterAlternateScreen, event::EnableBracketedPaste, cursor::Hide)?;
    if mouse {
        execute!(out, ReportMouse)?;
    }
    Ok(())
}

pub(super) fn leave_alone() {
    LEFT_ALONE.store(true, Ordering::SeqCst);
}

pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Restores the terminal; does nothing if it is not taken. Errors are ignored, because nothing could be done about them.
pub fn give_back() {
    let mut out = io::stdout().lock();
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if TITLED.swap(false, Ordering::SeqCst) {
        let _ = out.write_all(alert::OLD_TITLE.as_bytes());
    }
    let _ = execute!(
        out,
        style::ResetColor,
        event::DisableMouseCapture,
        event::DisableBracketedPaste,
        terminal::LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
}

/// Restores the terminal at the end of the program, with a time limit. If a write blocks because the terminal is not read,
/// at least the modes are set, which never blocks. Returns whether everything was done.
pub(super) fn give_back_in_time() -> bool {
    let _ = terminal::disable_raw_mode();
    let (done, wait) = mpsc::channel();
    let farewell = move || {
        give_back();
        let _ = done.send(());
    };
    // If the thread cannot be started, the channel closes at once.
    let _ = std::thread::Builder::new().spawn(farewell);
    wait.recv_timeout(SHUTDOWN_TIMEOUT).is_ok()
}
