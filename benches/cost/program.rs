//! The program in a terminal of 200x60.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use locktop::clock;
use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

/// Longest wait for anything on the screen.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The program's output so far.
#[derive(Default)]
struct Output {
    /// Total number of bytes.
    total: usize,
    /// The bytes that have not been examined yet.
    seen: Vec<u8>,
}

pub(crate) struct Program {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Arc<Mutex<Output>>,
    started: Instant,
    _terminal: Box<dyn portable_pty::MasterPty + Send>,
}

/// Deviations from the usual start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) without_history: bool,
}

/// A config without a limit on the load of the server: the program polls at the requested rate, which is measured here.
/// An older program that rejects this config has no such limit, and gets none.
fn config(program: &str, options: Options) -> String {
    let usual = "server_load = 1\nremember = false\n";
    let (path, history) = if options.without_history {
        (
            concat!(env!("CARGO_TARGET_TMPDIR"), "/cost-no-history.toml"),
            "[history]\nlength = \"0s\"\nmemory = \"0MB\"\n",
        )
    } else {
        (concat!(env!("CARGO_TARGET_TMPDIR"), "/cost.toml"), "")
    };
    std::fs::write(path, format!("{usual}{history}")).unwrap();
    let check = std::process::Command::new(program).args(["config", "check", "--config", path]).output();
    let known = check.is_ok_and(|check| check.status.success());
    if known { path } else { "/dev/null" }.to_owned()
}

impl Program {
    /// Starts it, polling once a second.
    pub(crate) fn start(conninfo: &str, screen: &str) -> Self {
        Self::start_with(conninfo, screen, Options::default())
    }

    /// Starts it with these options.
    pub(crate) fn start_with(conninfo: &str, screen: &str, options: Options) -> Self {
        let size = PtySize { rows: 60, cols: 200, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let program = std::env::var("LOCKTOP_PROGRAM");
        let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_locktop").to_owned());
        let config = config(&program, options);
        let mut command = CommandBuilder::new(program);
        command.args([conninfo, "--refresh", "1s", "--screen", screen, "--config", &config]);
        for (name, value) in [("LANG", "C.UTF-8"), ("TERM", "xterm-256color"), ("COLORTERM", "truecolor")] {
            command.env(name, value);
        }
        command.env_remove("NO_COLOR");
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let output = Arc::new(Mutex::new(Output::default()));
        let started = clock::monotonic();
        let child = pair.slave.spawn_command(command).unwrap();
        let filled = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut output = filled.lock().unwrap();
                output.total += count;
                output.seen.extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, keys, output, started, _terminal: pair.master }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits until `text` appears in the output; returns the time since the start. `text` must be of one style, without
    /// spaces.
    pub(crate) fn wait_for(&self, text: &str) -> Duration {
        loop {
            let passed = self.started.elapsed();
            {
                let mut output = self.output.lock().unwrap();
                if output.seen.windows(text.len()).any(|window| window == text.as_bytes()) {
                    output.seen.clear();
                    return passed;
                }
                assert!(
                    passed < TIMEOUT,
                    "timed out waiting for {text:?}: {}",
                    String::from_utf8_lossy(&output.seen)
                );
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Number of bytes written so far.
    pub(crate) fn bytes(&self) -> usize {
        let mut output = self.output.lock().unwrap();
        output.seen.clear();
        output.total
    }

    pub(crate) fn quit(mut self) {
        self.press("q");
        let since = clock::monotonic();
        while self.child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < TIMEOUT, "the program did not quit within {TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
