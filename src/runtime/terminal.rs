use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use crossterm::{Command, cursor, execute, style, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::termios::{self, OptionalActions};

use crate::app::message::Message;
use crate::keys::{Code, Key};
use crate::model::finding::AlertWays;
use crate::ui::layout::Viewport;

pub type TerminalScreen = Terminal<CrosstermBackend<FrameWriter<TerminalOutput>>>;

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
    TerminalOutput.write_all(title_sequence(text, is_first).as_bytes())?;
    TerminalOutput.flush()
}

pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether the terminal was closed; then no error can be shown.
pub(super) fn is_closed() -> bool {
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
pub struct TerminalOutput;

impl Write for TerminalOutput {
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
pub fn take(mouse: bool) -> io::Result<TerminalScreen> {
    enter(mouse)?;
    Terminal::new(CrosstermBackend::new(FrameWriter::new(TerminalOutput)))
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
        let _ = out.write_all(OLD_TITLE.as_bytes());
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

/// Begin and end of a synchronized update (DEC mode 2026): a terminal that supports it never shows half a frame, others
/// ignore it.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Output of an unchanged frame: default colours, no attributes, no cursor.
const NOTHING: &[u8] = b"\x1b[39m\x1b[49m\x1b[59m\x1b[0m\x1b[?25l";

/// Collects the output of a frame and passes it to the terminal in one write; an unchanged frame writes nothing. (A frame
/// that hides a visible cursor also changes the input line, so it is not mistaken for an unchanged one.)
#[derive(Debug)]
pub struct FrameWriter<W: Write> {
    inner: W,
    pending: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, pending: Vec::with_capacity(32 * 1024) }
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() || self.pending == NOTHING {
            self.pending.clear();
            return Ok(());
        }
        let mut whole = Vec::with_capacity(self.pending.len() + BEGIN.len() + END.len());
        whole.extend_from_slice(BEGIN);
        whole.extend_from_slice(&self.pending);
        whole.extend_from_slice(END);
        self.pending.clear();
        // A single huge frame must not keep its memory allocated.
        self.pending.shrink_to(64 * 1024);
        self.inner.write_all(&whole)?;
        self.inner.flush()
    }
}

/// The bell and a desktop notification: OSC 9 as in iTerm2 ("Proprietary Escape Codes" of its documentation), OSC 777 as in
/// urxvt (its extension "notify"). tmux passes such a sequence on only if it is wrapped and `allow-passthrough` is on
/// ("allow-passthrough" in tmux(1)); otherwise it drops it.
pub(super) fn sequences(ways: AlertWays, text: &str, in_tmux: bool) -> String {
    let mut out = String::new();
    if ways.bell {
        out.push('\x07');
    }
    let mut told = Vec::new();
    if ways.osc9 {
        // ConEmu would read a leading number as a command.
        told.push(format!("\x1b]9;locktop: {text}\x07"));
    }
    if ways.osc777 {
        // A semicolon would start another field.
        told.push(format!("\x1b]777;notify;locktop;{}\x07", text.replace(';', ",")));
    }
    for sequence in told {
        let _ = if in_tmux {
            write!(out, "\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
        } else {
            write!(out, "{sequence}")
        };
    }
    out
}

/// Sets the window title; the first call saves the old one (XTWINOPS 22 and OSC 2 in xterm's ctlseqs).
fn title_sequence(text: &str, is_first: bool) -> String {
    let keep = if is_first { "\x1b[22;2t" } else { "" };
    format!("{keep}\x1b]2;{text}\x07")
}

pub(super) const OLD_TITLE: &str = "\x1b[23;2t";

/// Rows per step of the mouse wheel.
const WHEEL: isize = 3;

pub(super) fn message(event: Event, viewport: &Viewport) -> Option<Message> {
    match event {
        Event::Key(event) => key(event).map(Message::Key),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Resize(columns, rows) => Some(Message::Resize(columns, rows)),
        Event::Mouse(event) => {
            let pane = viewport.row(event.column, event.row).map(|(pane, _)| pane);
            let wheel = |by| Some(Message::Wheel(pane, by));
            match event.kind {
                MouseEventKind::Down(MouseButton::Left) => {
                    viewport.hit(event.column, event.row).map(Message::Click)
                }
                MouseEventKind::ScrollDown => wheel(WHEEL),
                MouseEventKind::ScrollUp => wheel(-WHEEL),
                _ => None,
            }
        }
        Event::FocusGained | Event::FocusLost => None,
    }
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let code = match event.code {
        KeyCode::Char(character) => Code::Char(character),
        KeyCode::F(number) => Code::F(number),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        _ => return None,
    };
    let has = |modifier| event.modifiers.contains(modifier);
    Some(Key { code, ctrl: has(KeyModifiers::CONTROL), alt: has(KeyModifiers::ALT) })
}

#[cfg(test)]
mod tests {
    use ratatui::backend::CrosstermBackend;
    use ratatui::layout::Rect;
    use ratatui::{Terminal, TerminalOptions, Viewport};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn drawing_the_same_again_writes_nothing() {
        crossterm::style::force_color_output(true);
        let written = Written::default();
        let viewport = Viewport::Fixed(Rect::new(0, 0, 20, 2));
        let backend = CrosstermBackend::new(FrameWriter::new(written.clone()));
        let mut terminal = Terminal::with_options(backend, TerminalOptions { viewport }).unwrap();
        let mut draw = |text: &str| {
            terminal.draw(|frame| frame.render_widget(text, frame.area())).unwrap();
            std::mem::take(&mut *written.0.borrow_mut())
        };
        assert!(!draw("one").is_empty());
        assert_eq!(draw("one"), b"");
        assert!(!draw("two").is_empty());
    }

    #[test]
    fn a_frame_is_written_once_and_an_empty_one_never() {
        let mut writer = FrameWriter::new(Vec::new());
        writer.flush().unwrap();
        assert!(writer.inner.is_empty());
        writer.write_all(b"\x1b[1;1Ha").unwrap();
        writer.write_all(b"b").unwrap();
        writer.flush().unwrap();
        assert_eq!(writer.inner, b"\x1b[?2026h\x1b[1;1Hab\x1b[?2026l");
    }

    #[test]
    fn each_way_has_its_sequence() {
        let ways = |bell, osc9, osc777| AlertWays { bell, title: true, osc9, osc777 };
        for (ways, in_tmux, expected) in [
            (ways(true, false, false), false, "\x07"),
            (ways(false, true, false), false, "\x1b]9;locktop: 12; blocks 3\x07"),
            (ways(true, false, true), false, "\x07\x1b]777;notify;locktop;12, blocks 3\x07"),
            (ways(false, true, false), true, "\x1bPtmux;\x1b\x1b]9;locktop: 12; blocks 3\x07\x1b\\"),
        ] {
            assert_eq!(sequences(ways, "12; blocks 3", in_tmux), expected, "{ways:?}");
        }
    }

    #[test]
    fn key_presses_are_converted_and_other_events_ignored() {
        let converted = |code, modifiers| key(KeyEvent::new(code, modifiers)).map(|key| key.to_string());
        assert_eq!(converted(KeyCode::Char('K'), KeyModifiers::SHIFT).as_deref(), Some("K"));
        assert_eq!(converted(KeyCode::Char('c'), KeyModifiers::CONTROL).as_deref(), Some("Ctrl-C"));
        assert_eq!(converted(KeyCode::BackTab, KeyModifiers::SHIFT).as_deref(), Some("Shift-Tab"));
        assert_eq!(converted(KeyCode::CapsLock, KeyModifiers::NONE), None);
        let mut release = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        assert_eq!(key(release), None);
    }
}
