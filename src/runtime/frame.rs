//! One frame, one write.

use std::io::{self, Write};

/// Begin and end of a synchronized update (DEC mode 2026): a terminal that knows it never shows half a frame, others
/// ignore it.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Collects what a frame writes and hands it to the terminal in one piece; a frame that wrote nothing costs nothing.
#[derive(Debug)]
pub struct FrameWriter<W: Write> {
    inner: W,
    pending: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    /// Writes to `inner`.
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
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut whole = Vec::with_capacity(self.pending.len() + BEGIN.len() + END.len());
        whole.extend_from_slice(BEGIN);
        whole.extend_from_slice(&self.pending);
        whole.extend_from_slice(END);
        self.pending.clear();
        // One giant frame must not keep its memory for ever.
        self.pending.shrink_to(64 * 1024);
        self.inner.write_all(&whole)?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
