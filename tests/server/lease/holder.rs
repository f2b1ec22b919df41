//! A holder in a process of its own: this test program runs itself again for it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use locktop::locks::Held as _;
use locktop::locks::lease::{Lease, Request};
use locktop::pg::conninfo::ConnInfo;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::place::Session;
use super::support::TIMEOUT;

const ADDRESS: &str = "LOCKTOP_TEST_HOLDER";
/// In milliseconds.
const TERM_OF: &str = "LOCKTOP_TEST_TERM";
/// It has effects, each with a pause of this time in its transaction, in milliseconds.
const EFFECTS: &str = "LOCKTOP_TEST_EFFECTS";
const MARK: &str = "holder: ";

/// Long enough that a busy machine does not lose it, short enough to wait for.
pub(crate) const TERM: Duration = Duration::from_secs(4);

/// Acquires lease 7, or waits for it, and does a step for each line that it reads, until the lease is lost or
/// its input ends; then it tries what it is no longer permitted to do.
#[tokio::test]
#[ignore = "a process of the other tests"]
async fn holder() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let info = ConnInfo::parse(&address).unwrap();
    let session = Session::open(&info).await;
    let term = Duration::from_millis(std::env::var(TERM_OF).unwrap().parse().unwrap());
    let lease = Lease::acquire_within(&info, &Request::new(7, "one name", term), TIMEOUT).await;
    let lease = lease.unwrap().expect("it is free in time");
    print_line(&format!("held {}", lease.token()));
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    if let Ok(pause) = std::env::var(EFFECTS) {
        let pause = Duration::from_millis(pause.parse().unwrap());
        let work = async {
            tokio::select! {
                () = super::faults::effects(&info, &lease, pause) => {}
                // No line arrives, only the end of the input.
                _ = lines.recv() => {}
            }
        };
        let _ = lease.run(work).await;
        let _ = lease.release().await;
        return;
    }
    let work = async {
        while lines.recv().await.is_some() {
            session.ask("INSERT INTO public.steps VALUES ('unfenced')").await;
            // In a separate task, which this single thread runs once the work waits for the next line: a
            // process that is stopped then is not in the middle of a step, which would continue when it
            // wakes.
            tokio::spawn(async { print_line("stepped") });
        }
    };
    match lease.run(work).await {
        Ok(()) => print_line("done"),
        Err(loss) => print_line(&loss.to_string()),
    }
    let token = lease.token();
    print_line(&format!("renewed {}", session.ask(&format!("SELECT lease_renew(7, {token})")).await));
    print_line(&format!("released {}", lease.release().await.unwrap()));
    let write = format!("SELECT assert_lease(7, {token}); INSERT INTO public.steps VALUES ('fenced')");
    print_line(&format!("write {}", session.refused(&write).await));
}

pub(super) fn print_line(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{what}").unwrap();
    out.flush().unwrap();
}

/// Such a process, as a test controls it.
pub(crate) struct Holder {
    child: Child,
    lines: Receiver<String>,
}

impl Holder {
    /// Starts one; it needs the table `public.steps`.
    pub(crate) fn start(address: &str) -> Self {
        Self::start_with(address, TERM)
    }

    pub(crate) fn start_with(address: &str, term: Duration) -> Self {
        Self::run(address, term, &mut Command::new(std::env::current_exe().unwrap()))
    }

    /// It has effects until it is asked to finish.
    pub(crate) fn start_with_effects(address: &str, term: Duration, pause: Duration) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::run(address, term, command.env(EFFECTS, pause.as_millis().to_string()))
    }

    fn run(address: &str, term: Duration, command: &mut Command) -> Self {
        let mut child = command
            .args(["--ignored", "--exact", "lease::holder::holder", "--nocapture"])
            .env(ADDRESS, address)
            .env(TERM_OF, term.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A stopped process of an orphaned group is woken and hung up: it does not outlive this one.
            .process_group(0)
            .spawn()
            .unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some((_, what)) = line.split_once(MARK)
                    && sender.send(what.to_owned()).is_err()
                {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that it prints.
    pub(crate) async fn next_line(&mut self) -> String {
        let mut line = None;
        super::support::wait_until("the next line of the holder", async || {
            line = self.lines.try_recv().ok();
            line.is_some()
        })
        .await;
        line.unwrap()
    }

    /// Asks for a step.
    pub(crate) fn step(&mut self) {
        let mut pipe = self.child.stdin.as_ref().unwrap();
        pipe.write_all(b"step\n").unwrap();
    }

    /// Lets it release the lease.
    pub(crate) fn finish(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Returns once it is stopped.
    pub(crate) fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
        let start = locktop::clock::monotonic();
        loop {
            let status = waitpid(Some(self.pid()), WaitOptions::UNTRACED | WaitOptions::NOHANG).unwrap();
            if status.is_some_and(|(_, status)| status.stopped()) {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "it does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn wake(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        // Not reaped: the others may ask for its state.
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
