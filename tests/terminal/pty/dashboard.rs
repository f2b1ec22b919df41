//! The program with a user who acts, and the record of the requested actions.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio_postgres::Client;

use super::screen::{Screen, Size};
use super::support;

/// A screen with its own record of actions.
pub(crate) struct Dashboard {
    pub(crate) screen: Screen,
    state: TempDir,
}

impl Dashboard {
    /// The program on a server.
    pub(crate) fn at(size: Size, target: &str, arguments: &[&str]) -> Self {
        Self::with(size, target, arguments, "")
    }

    /// The same with a config file.
    pub(crate) fn with(size: Size, target: &str, arguments: &[&str], config: &str) -> Self {
        Self::with_env(size, target, arguments, config, &[])
    }

    /// The same with additional environment variables.
    pub(crate) fn with_env(
        size: Size,
        target: &str,
        arguments: &[&str],
        config: &str,
        env: &[(&str, &str)],
    ) -> Self {
        let state = tempfile::tempdir().unwrap();
        let home = state.path().join("locktop");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("config.toml"), config).unwrap();
        let screen = Self::screen(&state, size, target, arguments, env);
        Self { screen, state }
    }

    fn screen(state: &TempDir, size: Size, target: &str, arguments: &[&str], env: &[(&str, &str)]) -> Screen {
        let home = state.path().to_str().unwrap();
        let env = [&[("XDG_STATE_HOME", home), ("XDG_CONFIG_HOME", home)], env].concat();
        let all = [&[target, "--refresh", "0.2s"], arguments].concat();
        Screen::spawn(size, &env, &all)
    }

    /// Starts the program again, with the same record.
    pub(crate) fn again(&mut self, size: Size, target: &str, arguments: &[&str]) {
        self.screen = Self::screen(&self.state, size, target, arguments, &[]);
    }

    /// The path of its config file.
    pub(crate) fn config(&self) -> PathBuf {
        self.state.path().join("locktop/config.toml")
    }

    fn file(&self) -> PathBuf {
        self.state.path().join("locktop/audit.jsonl")
    }

    /// Number of lines of the record that contain this text.
    pub(crate) fn on_record(&self, words: &str) -> usize {
        let lines = std::fs::read_to_string(self.file()).unwrap_or_default();
        lines.lines().filter(|line| line.contains(words)).count()
    }

    /// Waits until this many actions are recorded as done: that is recorded after the server's answer.
    pub(crate) fn done(&self, times: usize) {
        let all = || self.on_record("\"fate\":\"done\"") == times;
        support::wait_for(&format!("{times} actions to be on record"), all);
    }

    /// Number of requested actions.
    pub(crate) fn asked(&self) -> usize {
        self.on_record("\"event\":\"asked\"")
    }

    /// Opens a question with a key, and waits until it can be answered.
    pub(crate) fn question(&mut self, key: &str, answer: &str) {
        self.screen.asks(key, answer);
    }

    /// Selects the first row, which contains this text.
    pub(crate) fn select_first(&mut self, text: &str) {
        support::wait_for(&format!("{text} to be selected"), || {
            self.screen.keys("g");
            self.screen.contents().lines().any(|line| line.starts_with('>') && line.contains(text))
        });
    }

    /// Closes a question that is over, and removes its message, which disappears after it was drawn in a
    /// frame.
    pub(crate) fn take_away(&mut self, message: &str) {
        support::wait_for("the message to be read", || {
            self.screen.keys("<esc>");
            std::thread::sleep(std::time::Duration::from_millis(150));
            !self.screen.contents().contains(message)
        });
    }

    /// Quits the program.
    pub(crate) fn quit(&mut self) {
        self.screen.keys("q");
        assert_eq!(self.screen.wait_exit(), 0);
    }
}

pub(crate) async fn session_exists(client: &Client, pid: i32) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)";
    client.query_one(sql, &[&pid]).await.unwrap().get(0)
}

/// Waits until a statement returns this text.
pub(crate) async fn becomes(client: &Client, sql: &str, expected: &str) {
    let sql = format!("SELECT ({sql})::text");
    support::wait_until(&format!("{expected} from {sql}"), async || {
        client.query_one(&sql, &[]).await.unwrap().get::<_, Option<String>>(0).as_deref() == Some(expected)
    })
    .await;
}
