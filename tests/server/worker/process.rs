//! Workers that are processes of their own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use rustix::process::{Pid, Signal, kill_process};

use super::binary::{Left, finish, locktop};
use super::support::{server_of, wait_until};

/// The connection string of a database on the server of that version, for the command line.
pub(crate) async fn target(version: u32, info: &ConnInfo) -> String {
    target_on(server_of(version).await, info)
}

pub(crate) fn target_on(server: &EmbeddedServer, info: &ConnInfo) -> String {
    server.conninfo().replace("dbname=postgres", &format!("dbname={}", info.dbname()))
}

/// `locktop worker`, with its log.
#[derive(Debug)]
pub(crate) struct Process {
    child: Option<Child>,
    pid: Pid,
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Process {
    /// With a heartbeat so short that tests need not wait.
    pub(crate) fn start(id: &str, more: &[&str], target: &str) -> Self {
        let mut arguments = vec!["-w", "worker", "--id", id, "--heartbeat", "200ms"];
        arguments.extend(more);
        arguments.push(target);
        Self::of(locktop(&arguments))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        // The test ends its standard input.
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, pid) = (BufReader::new(child.stderr.take().unwrap()).lines(), Pid::from_child(&child));
        let keep = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                keep.lock().unwrap().push(line);
            }
        });
        Self { child: Some(child), pid, log, reader: Some(reader) }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    pub(crate) async fn wait_for(&self, part: &str) {
        wait_until(&format!("\"{part}\""), async || self.log().contains(part)).await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Ends its standard input.
    pub(crate) fn end_input(&mut self) {
        drop(self.child.as_mut().unwrap().stdin.take());
    }

    /// Its end: exit status, standard output, and log.
    pub(crate) async fn ended(mut self) -> Left {
        let child = self.child.take().unwrap();
        let reader = self.reader.take().unwrap();
        let end = move || {
            let left = finish(child, "the worker");
            reader.join().unwrap();
            left
        };
        let left = tokio::task::spawn_blocking(end).await.unwrap();
        Left { err: self.log(), ..left }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
