use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::task::JoinSet;

use locktop_base::text::{fit, one_line_prefix};

/// Bytes of output that are kept: the end.
const KEPT: usize = 16 * 1024;
/// Lines that are reported, and the length of each.
const LINES: usize = 10;
const WIDTH: usize = 300;

/// Standard output and standard error, in the order of arrival.
#[derive(Debug)]
pub(super) struct Output {
    tail: Arc<Mutex<Tail>>,
    readers: JoinSet<()>,
}

impl Output {
    pub(super) fn of(out: Option<ChildStdout>, err: Option<ChildStderr>) -> Self {
        let tail = Arc::<Mutex<Tail>>::default();
        let mut readers = JoinSet::new();
        if let Some(out) = out {
            readers.spawn(read(out, Arc::clone(&tail)));
        }
        if let Some(err) = err {
            readers.spawn(read(err, Arc::clone(&tail)));
        }
        Self { tail, readers }
    }

    /// The last lines, at the end of all output or after `limit`.
    pub(super) async fn last(mut self, limit: Duration) -> String {
        let _ =
            tokio::time::timeout(limit, async { while self.readers.join_next().await.is_some() {} }).await;
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).lines()
    }
}

/// Reads to the end, because a program whose pipe is full would wait.
async fn read(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let said = buffer.get(..count).unwrap_or_default();
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }
}

#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, said: &[u8]) {
        let said = said.get(said.len().saturating_sub(KEPT)..).unwrap_or_default();
        let over = (self.0.len() + said.len()).saturating_sub(KEPT);
        self.0.drain(..over);
        self.0.extend(said);
    }

    /// The last lines, sanitized.
    fn lines(&mut self) -> String {
        let text = String::from_utf8_lossy(self.0.make_contiguous());
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        let last = last.iter().map(|line| fit(&one_line_prefix(line, WIDTH), WIDTH).into_owned());
        last.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_harmless() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.push(format!("line {number}\n\n").as_bytes());
        }
        tail.push(b"\x1b[2Jlast\xff");
        assert!(tail.0.len() <= KEPT);
        let lines = tail.lines();
        assert_eq!(lines.lines().count(), LINES);
        assert!(lines.starts_with("line 99991\n") && lines.ends_with("last\u{fffd}"), "{lines:?}");
        assert!(!lines.contains('\u{1b}'));
        tail.push(&vec![b'x'; 10 * KEPT]);
        assert!(tail.0.len() == KEPT && tail.lines().chars().count() <= WIDTH);
    }
}
