//! Taking the terminal and giving it back: on quit, error, panic, a signal, and around a suspension.

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

/// The terminal as the screens draw on it.
pub type Screen = Terminal<CrosstermBackend<FrameWriter<Output>>>;

/// How long giving back may take where the terminal may be one that nobody reads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether the terminal is ours now: giving it back twice, from a panic and from the end of the program, must do nothing.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether it is not taken again: the message of a panic stands there.
static LEFT_ALONE: AtomicBool = AtomicBool::new(false);

/// Whether the window has a title of ours.
static TITLED: AtomicBool = AtomicBool::new(false);

/// Gives the window another title; the one it had comes back with the terminal.
pub(super) fn title(text: &str) -> io::Result<()> {
    let is_first = !TITLED.swap(true, Ordering::SeqCst);
    Output.write_all(alert::title(text, is_first).as_bytes())?;
    Output.flush()
}

/// Whether there is a terminal to draw on and to read keys from.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether the terminal was closed under us: whatever went wrong then, nobody is there to read of it.
pub(super) fn is_gone() -> bool {
    rustix::termios::tcgetattr(io::stdout()).is_err()
}

/// Whether keys are there that were not read yet.
pub(super) fn has_unread() -> bool {
    rustix::io::ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0)
}

/// Has keys read that came together with a change of the terminal's size. Of both crossterm reports only the size: it waits for what is new
/// (`src/event/source/unix/mio.rs` of crossterm 0.29), and the keys are not any more. Setting the terminal's attributes as they are wakes
/// all that wait for input (`n_tty_set_termios` in Linux's `drivers/tty/n_tty.c`).
pub(super) fn read_again() {
    if has_unread()
        && let Ok(attributes) = termios::tcgetattr(io::stdin())
    {
        // Without it the keys are read together with the next one.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &attributes);
    }
}

/// Asks the terminal to report buttons and the wheel (xterm's modes 1000 and 1006, "Mouse Tracking" in its ctlseqs), and
/// not every movement as `EnableMouseCapture` does: nobody wants to be woken for those.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportMouse;

impl Command for ReportMouse {
    fn write_ansi(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_str("\x1b[?1000h\x1b[?1006h")
    }
}

/// The terminal for as long as it is ours: what is written later goes nowhere, so that nothing is drawn over the
/// message of a panic in another thread.
#[derive(Debug)]
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Giving back takes this lock too: it never comes between the question and the write.
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

/// Takes the terminal: raw mode, the alternate screen, bracketed paste, and the mouse where it is wanted.
pub fn take(mouse: bool) -> io::Result<Screen> {
    enter(mouse)?;
    Terminal::new(CrosstermBackend::new(FrameWriter::new(Output)))
}

/// Takes the terminal, also again: after it was given back, or after the program was stopped without a chance to do so
/// and the shell has set the modes that it likes. After a panic it stays with what is written on it.
pub(super) fn enter(mouse: bool) -> io::Result<()> {
    // The palette is resolved by the theme: left to itself, NO_COLOR would take bold and reverse away, and with them
    // the selection.
    style::force_color_output(true);
    if LEFT_ALONE.load(Ordering::SeqCst) {
        return Ok(());
    }
    // Where raw mode is believed to be on, turning it on does nothing.
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

/// From now on the terminal is not taken again.
pub(super) fn leave_alone() {
    LEFT_ALONE.store(true, Ordering::SeqCst);
}

/// Whether the terminal is ours, and not given back.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Gives the terminal back as it was. Does nothing when it is not ours; never fails, since nothing could be done.
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

/// The same, for the program's last moment: when a write blocks because nobody reads the terminal, its modes at least are
/// set, which never blocks. Whether all was done.
pub(super) fn give_back_in_time() -> bool {
    let _ = terminal::disable_raw_mode();
    let (done, wait) = mpsc::channel();
    let farewell = move || {
        give_back();
        let _ = done.send(());
    };
    // Without a thread more the channel closes at once.
    let _ = std::thread::Builder::new().spawn(farewell);
    wait.recv_timeout(SHUTDOWN_TIMEOUT).is_ok()
}
