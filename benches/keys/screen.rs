//! The program in a terminal, and the time at which the selected row changes.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use locktop::clock;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Longest wait for anything on the screen.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The program's output so far.
struct Seen {
    emulator: vt100::Parser,
    /// When the last bytes arrived.
    at: Instant,
}

impl Seen {
    /// The row under the cursor.
    fn selected(&self) -> Option<u16> {
        let screen = self.emulator.screen();
        (0..screen.size().0.get()).find(|row| screen.cell(*row, 0).is_some_and(|cell| cell.contents() == ">"))
    }
}

/// The running program. Dropping it kills the program.
pub(crate) struct Screen {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    _terminal: Box<dyn MasterPty + Send>,
}

impl Screen {
    /// Starts it, polling once a second.
    pub(crate) fn start(conninfo: &str, name: &str, (columns, rows): (u16, u16)) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_locktop"));
        command.args([conninfo, "--refresh", "1s", "--screen", name, "--config", "/dev/null"]);
        for (name, value) in [("LANG", "C.UTF-8"), ("TERM", "xterm-256color"), ("COLORTERM", "truecolor")] {
            command.env(name, value);
        }
        command.env_remove("NO_COLOR");
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let (rows, columns) = (NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap());
        let seen = Seen { emulator: vt100::Parser::new(rows, columns, 0), at: clock::monotonic() };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let filled = Arc::clone(&seen);
        let child = pair.slave.spawn_command(command).unwrap();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let at = clock::monotonic();
                let mut seen = filled.0.lock().unwrap_or_else(PoisonError::into_inner);
                seen.emulator.process(&buffer[..count]);
                seen.at = at;
                filled.1.notify_all();
            }
        });
        Self { child, keys, seen, _terminal: pair.master }
    }

    /// Waits until a condition is true; returns the arrival time of the bytes that made it true.
    fn wait(&self, expected: &str, condition: impl Fn(&Seen) -> bool) -> Instant {
        let start = clock::monotonic();
        let mut seen = self.seen.0.lock().unwrap();
        while !condition(&seen) {
            let left = TIMEOUT.saturating_sub(start.elapsed());
            assert!(
                !left.is_zero(),
                "timed out waiting for {expected}:\n{}",
                seen.emulator.screen().contents()
            );
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
        seen.at
    }

    /// Waits until a text is on the screen.
    pub(crate) fn shows(&self, text: &str) {
        self.wait(text, |seen| seen.emulator.screen().contents().contains(text));
    }

    /// The state of the connection in the header: `LIVE`, `NO ANSWER`, `DOWN`.
    pub(crate) fn link(&self) -> Option<&'static str> {
        let seen = self.seen.0.lock().unwrap();
        let text = seen.emulator.screen().contents();
        let header = text.lines().next()?;
        ["LIVE", "NO ANSWER", "DOWN"].into_iter().find(|state| header.contains(state))
    }

    /// Presses a key that selects another row; returns the time until another row is selected.
    pub(crate) fn moves(&mut self, key: &str) -> Duration {
        let before = self.seen.0.lock().unwrap().selected();
        let pressed = clock::monotonic();
        self.keys.write_all(key.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        let moved = self.wait("another row", |seen| seen.selected().is_some() && seen.selected() != before);
        moved.saturating_duration_since(pressed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
