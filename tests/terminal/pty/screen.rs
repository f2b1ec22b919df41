//! The program in a pseudo terminal, with a terminal emulator behind it.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use locktop::clock;
use locktop::keys::Key;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::process;
use super::support::{TIMEOUT, wait_for};

/// The program itself.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_locktop");

/// Requests of the program to the terminal other than drawing.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) titles: Vec<Vec<u8>>,
    pub(crate) bells: usize,
    pub(crate) copied: Vec<Vec<u8>>,
}

impl vt100::Callbacks for Asked {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.titles.push(name.to_vec());
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.titles.push(title.to_vec());
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.copied.push(data.to_vec());
    }
}

/// The output of the program so far.
pub(crate) struct Seen {
    pub(crate) emulator: vt100::Parser<Asked>,
    pub(crate) raw: Vec<u8>,
    reading: bool,
    closed: bool,
    ended: bool,
}

impl Seen {
    /// Whether the newest frame is complete.
    fn is_whole(&self) -> bool {
        let marker = b"\x1b[?2026";
        let last = self.raw.windows(marker.len()).rposition(|bytes| bytes == marker);
        last.is_none_or(|at| self.raw.get(at + marker.len()) == Some(&b'l'))
    }
}

struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Shared {
    /// Also works after a test has panicked with the lock.
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Columns and rows.
pub(crate) type Size = (u16, u16);

/// The running program and its terminal. Dropping it kills the program.
pub(crate) struct Screen {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    /// The process id of the program if the child is a shell that started it.
    program: Option<Pid>,
    shared: Arc<Shared>,
    tty: PathBuf,
    before: Termios,
    /// The state that the program keeps between two starts.
    _state: tempfile::TempDir,
}

impl Screen {
    /// Starts the program in a terminal of this size, with these arguments and these additional environment
    /// variables.
    pub(crate) fn spawn(size: Size, env: &[(&str, &str)], arguments: &[&str]) -> Self {
        let all: Vec<&str> = [PROGRAM].iter().chain(arguments).copied().collect();
        Self::start(size, env, &all)
    }

    /// Starts a shell, which starts the program; `shell` is the command line of the shell.
    pub(crate) fn spawn_shell(size: Size, env: &[(&str, &str)], shell: &[&str]) -> Self {
        let mut screen = Self::start(size, env, shell);
        wait_for("the shell to start the program", || {
            let children = process::children(screen.pid());
            screen.program = children.first().copied().and_then(Pid::from_raw);
            screen.program.is_some()
        });
        screen
    }

    fn start(size: Size, env: &[(&str, &str)], words: &[&str]) -> Self {
        let mut command = CommandBuilder::new(words[0]);
        command.args(&words[1..]);
        command.env_clear();
        for name in ["PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "LOCKTOP_PG_BIN"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in
            [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("XDG_CONFIG_HOME", "/nonexistent")]
        {
            command.env(name, value);
        }
        // Each program starts with an empty state directory.
        let state = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        command.env("XDG_STATE_HOME", state.path());
        for (name, value) in env {
            command.env(name, value);
        }
        let pair = native_pty_system().openpty(pty_size(size)).unwrap();
        let tty = pair.master.tty_name().unwrap();
        let before = tcgetattr(open(&tty)).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        let emulator = emulator(size);
        let seen = Mutex::new(Seen { emulator, raw: Vec::new(), reading: true, closed: false, ended: false });
        let shared = Arc::new(Shared { seen, changed: Condvar::new() });
        let reader = pair.master.try_clone_reader().unwrap();
        let for_thread = Arc::clone(&shared);
        std::thread::spawn(move || read(reader, &for_thread));
        let writer = Some(pair.master.take_writer().unwrap());
        Self { master: Some(pair.master), writer, child, program: None, shared, tty, before, _state: state }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.lock()
    }

    /// Waits until a whole frame fulfills a condition; otherwise fails and shows the screen.
    pub(crate) fn wait_for(&self, what: &str, mut condition: impl FnMut(&vt100::Screen) -> bool) {
        self.wait(what, |seen| seen.is_whole() && condition(seen.emulator.screen()));
    }

    /// The same for the whole output so far.
    pub(crate) fn wait(&self, what: &str, mut condition: impl FnMut(&Seen) -> bool) {
        let start = clock::monotonic();
        let mut seen = self.seen();
        while !condition(&seen) {
            let left = TIMEOUT.saturating_sub(start.elapsed());
            if left.is_zero() {
                let end = seen.raw.len().saturating_sub(300);
                panic!(
                    "timed out waiting for {what}; the screen:\n{}\nthe last bytes: {}",
                    seen.emulator.screen().contents(),
                    String::from_utf8_lossy(&seen.raw[end..]).escape_debug()
                );
            }
            seen = self.shared.changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits until a text is on the screen.
    pub(crate) fn shows(&self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    /// Waits until a text is no longer on the screen.
    pub(crate) fn hides(&self, text: &str) {
        self.wait_for(&format!("the end of {text}"), |screen| !screen.contents().contains(text));
    }

    /// Waits for one of these texts; whether it is the good one.
    pub(crate) fn answers(&self, good: &str, bad: &[&str]) -> bool {
        let mut is_good = false;
        self.wait_for(good, |seen| {
            let text = seen.contents();
            is_good = text.contains(good);
            is_good || bad.iter().any(|words| text.contains(words))
        });
        is_good
    }

    /// Presses the key of an action until its question is open: the key is refused while the row under the
    /// cursor is new there.
    pub(crate) fn asks(&mut self, key: &str, question: &str) {
        const REFUSED: &str = "has just changed; press again";
        self.keys(key);
        while !self.answers(question, &[REFUSED]) {
            self.hides(REFUSED);
            self.keys(key);
        }
    }

    /// Waits until the row with this text is the one under the cursor.
    pub(crate) fn shows_selected(&self, text: &str) {
        self.wait_for(&format!("{text} to be selected"), |screen| {
            screen.contents().lines().any(|line| line.starts_with('>') && line.contains(text))
        });
    }

    pub(crate) fn contents(&self) -> String {
        self.seen().emulator.screen().contents()
    }

    /// All output since the alternate screen was left for the last time.
    pub(crate) fn raw_tail(&self) -> String {
        let seen = self.seen();
        let leave = b"\x1b[?1049l";
        let at = seen.raw.windows(leave.len()).rposition(|bytes| bytes == leave);
        let tail = &seen.raw[at.expect("the alternate screen was never left") + leave.len()..];
        String::from_utf8_lossy(tail).into_owned()
    }

    /// Presses keys, written as [`Key::parse_all`] reads them.
    pub(crate) fn keys(&mut self, keys: &str) {
        let bytes: Vec<u8> = Key::parse_all(keys).unwrap().into_iter().flat_map(super::escapes::of).collect();
        self.write(&bytes);
    }

    /// Types bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(bytes).unwrap();
        writer.flush().unwrap();
    }

    pub(crate) fn resize(&self, size: Size) {
        // First the emulator: what the program draws next is meant for the new size.
        let (columns, rows) = (at_least_one(size.0), at_least_one(size.1));
        self.seen().emulator.set_size(rows, columns);
        self.master.as_ref().unwrap().resize(pty_size(size)).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        self.program.unwrap_or_else(|| {
            let pid = self.child.process_id().unwrap();
            Pid::from_raw(pid.try_into().unwrap()).unwrap()
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until the program has ended and its whole output is read; returns its exit status.
    pub(crate) fn wait_exit(&mut self) -> u32 {
        let status = self.exit_status();
        self.wait("the end of the output", |seen| seen.ended);
        status
    }

    /// Waits until the program has ended, whether or not its output is read; returns its exit status.
    pub(crate) fn exit_status(&mut self) -> u32 {
        let start = clock::monotonic();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // After a signal the number has no meaning.
                assert!(status.signal().is_none(), "{status}");
                return status.exit_code();
            }
            assert!(start.elapsed() < TIMEOUT, "the program does not end; the screen:\n{}", self.contents());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Closes the terminal, with the next frame.
    pub(crate) fn hang_up(&mut self) {
        self.seen().closed = true;
        self.writer = None;
        self.master = None;
    }

    /// Stops reading the program's output.
    pub(crate) fn stop_reading(&self) {
        self.seen().reading = false;
    }

    /// Continues reading.
    pub(crate) fn read_on(&self) {
        self.seen().reading = true;
        self.shared.changed.notify_all();
    }

    /// The modes of the terminal: input, output, control and local. The program's side of the terminal is not
    /// accessible after the program's end. The type is u32 on Linux, u64 on macOS.
    fn modes(&self) -> [u64; 4] {
        let now = self.master.as_ref().and_then(|master| master.get_termios()).unwrap();
        let flags = (now.input_flags, now.output_flags, now.control_flags, now.local_flags);
        [flags.0.bits(), flags.1.bits(), flags.2.bits(), flags.3.bits()].map(u64::from)
    }

    pub(crate) fn is_raw(&self) -> bool {
        self.modes()[3] & u64::from(LocalModes::ICANON.bits()) == 0
    }

    /// Sets the terminal's modes as they were before the program began, as a shell does.
    pub(crate) fn cook(&self) {
        tcsetattr(open(&self.tty), OptionalActions::Now, &self.before).unwrap();
    }

    /// Whether the terminal is as it was before the program began.
    pub(crate) fn is_restored(&self) -> bool {
        let before = &self.before;
        let (input, output) = (before.input_modes.bits(), before.output_modes.bits());
        let (control, local) = (before.control_modes.bits(), before.local_modes.bits());
        let seen = self.seen();
        let screen = seen.emulator.screen();
        self.modes() == [input, output, control, local].map(u64::from)
            && !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    /// Fails unless the terminal is as it was before the program began.
    pub(crate) fn assert_restored(&self) {
        assert!(self.is_restored(), "not restored: {:x?}\n{}", self.modes(), self.raw_end());
    }

    fn raw_end(&self) -> String {
        let seen = self.seen();
        String::from_utf8_lossy(&seen.raw[seen.raw.len().saturating_sub(300)..]).escape_debug().to_string()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.read_on();
        if let Ok(None) = self.child.try_wait() {
            process::end(self.pid());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Its own drop would write an end of file, which is not read any more.
        self.writer.take();
    }
}

fn read(mut reader: Box<dyn Read + Send>, shared: &Shared) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let seen = shared.lock();
        let seen = shared.changed.wait_while(seen, |seen| !seen.reading && !seen.closed);
        if seen.is_ok_and(|seen| seen.closed) {
            return;
        }
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => {
                shared.lock().ended = true;
                return shared.changed.notify_all();
            }
            Ok(count) => {
                let mut seen = shared.lock();
                seen.raw.extend_from_slice(&buffer[..count]);
                seen.emulator.process(&buffer[..count]);
                shared.changed.notify_all();
            }
        }
    }
}

/// Opens the program's side of the terminal, without making it the controlling terminal of the test.
fn open(tty: &PathBuf) -> rustix::fd::OwnedFd {
    rustix::fs::open(tty, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn emulator(size: Size) -> vt100::Parser<Asked> {
    vt100::Parser::new_with_callbacks(at_least_one(size.1), at_least_one(size.0), 0, Asked::default())
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}

fn pty_size((cols, rows): Size) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

/// The text of a row, one cell a column: a wide character fills two, and the second is empty.
pub(crate) fn cells(screen: &vt100::Screen, row: u16) -> Vec<String> {
    let columns = screen.size().1.get();
    let text = |column| screen.cell(row, column).map(|cell| cell.contents().to_owned()).unwrap_or_default();
    (0..columns).map(text).collect()
}

/// The row and column in which a text begins on the screen.
pub(crate) fn find(screen: &vt100::Screen, text: &str) -> Option<(u16, u16)> {
    (0..screen.size().0.get()).find_map(|row| Some((row, column_of(screen, row, text)?)))
}

/// The column in which a text begins in a row.
pub(crate) fn column_of(screen: &vt100::Screen, row: u16, text: &str) -> Option<u16> {
    // The second half of a wide character has no text, so that no text begins there.
    let half = |column: u16| screen.cell(row, column).is_some_and(vt100::Cell::is_wide_continuation);
    let shown = |(column, cell): (u16, &String)| match cell.as_str() {
        "" if !half(column) => " ".to_owned(),
        cell => cell.to_owned(),
    };
    let cells: Vec<String> = (0u16..).zip(&cells(screen, row)).map(shown).collect();
    (0u16..)
        .zip(0..cells.len())
        .filter(|(column, _)| !half(*column))
        .find(|(_, at)| cells[*at..].concat().starts_with(text))
        .map(|(column, _)| column)
}
