//! The program in a terminal.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use locktop::clock;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::support::TIMEOUT;

pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    bytes: Receiver<Vec<u8>>,
    written: String,
}

impl Terminal {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in("C.UTF-8", arguments)
    }

    /// Starts the program in a locale.
    pub(crate) fn start_in(locale: &str, arguments: &[&str]) -> Self {
        let size = PtySize { rows: 24, cols: 80, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_locktop"));
        command.env_clear();
        command.cwd("/");
        for (name, value) in [("HOME", "/nonexistent"), ("LANG", locale), ("TERM", "xterm-256color")] {
            command.env(name, value);
        }
        command.args(arguments);
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // On Linux the end of the terminal is an error.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, master: pair.master, bytes, written: String::new() }
    }

    /// Waits for a text in the output.
    pub(crate) fn until(&mut self, text: &str) -> &str {
        let start = clock::monotonic();
        while !self.written.contains(text) {
            assert!(start.elapsed() < TIMEOUT, "timed out waiting for {text:?} in {:?}", self.written);
            match self.bytes.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.written.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended without {text:?}: {:?}", self.written)
                }
            }
        }
        &self.written
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.take_writer().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end; returns the exit status, and all output.
    pub(crate) fn end(mut self) -> (u32, String) {
        let start = clock::monotonic();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > TIMEOUT {
                let _ = self.child.kill();
                panic!("it does not end: {:?}", self.written);
            }
            self.written
                .extend(self.bytes.try_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
            std::thread::sleep(Duration::from_millis(5));
        };
        drop(self.master);
        while let Ok(bytes) = self.bytes.recv_timeout(TIMEOUT) {
            self.written.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status.exit_code(), self.written)
    }
}
