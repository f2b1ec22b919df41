//! Taking the terminal and giving it back: on quit, error, panic, a signal, and around a suspension.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::{cursor, event, execute, style, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::frame::FrameWriter;

/// The terminal as the screens draw on it.
pub type Screen = Terminal<CrosstermBackend<FrameWriter<io::Stdout>>>;

/// Whether the terminal is ours now: giving it back twice, from a panic and from the end of the program, must do nothing.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether there is a terminal to draw on and to read keys from.
#[must_use]
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Takes the terminal: raw mode, the alternate screen, bracketed paste.
///
/// # Errors
/// When the terminal refuses.
pub fn take() -> io::Result<Screen> {
    enter(false)?;
    Terminal::new(CrosstermBackend::new(FrameWriter::new(io::stdout())))
}

/// Takes the terminal again after it was given back, with the mouse if it was on.
///
/// # Errors
/// When the terminal refuses.
pub(super) fn enter(mouse: bool) -> io::Result<()> {
    // The palette is resolved by the theme: left to itself, NO_COLOR would take bold and reverse away, and with them
    // the selection.
    style::force_color_output(true);
    terminal::enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    let mut out = io::stdout();
    execute!(out, terminal::EnterAlternateScreen, event::EnableBracketedPaste, cursor::Hide)?;
    if mouse {
        execute!(out, event::EnableMouseCapture)?;
    }
    Ok(())
}

/// Whether the terminal is ours.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}

/// Gives the terminal back as it was. Does nothing when it is not ours; never fails, since nothing could be done.
pub fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = execute!(
        out,
        style::ResetColor,
        event::DisableMouseCapture,
        event::DisableBracketedPaste,
        terminal::LeaveAlternateScreen,
        cursor::Show
    );
    let _ = out.flush();
    let _ = terminal::disable_raw_mode();
}

/// Gives the terminal back before a panic, in any thread or task, writes its message.
pub fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        give_back();
        before(info);
    }));
}
