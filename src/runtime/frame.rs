use std::io::{self, Write};

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

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::CrosstermBackend;
    use ratatui::layout::Rect;
    use ratatui::{TerminalOptions, Viewport};

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
}
