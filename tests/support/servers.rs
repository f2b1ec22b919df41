//! The servers that the tests of one suite share: each is started by the first test that needs it.
//!
//! A test program has several suites, which do not share servers: a test may change its servers. All servers
//! of all suites at the same time would need too much memory. The tests run suite by suite, in alphabetical
//! order: when a test of another suite needs a server, the servers without users are stopped. A late test of
//! a stopped suite gets a newly started server.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locktop::clock;
use locktop::demo::postgres::EmbeddedServer;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::OnceCell;

use super::TIMEOUT;

/// Every suite that has used servers.
static SUITES: Mutex<Vec<&'static Servers>> = Mutex::new(Vec::new());

/// The servers of one suite.
#[derive(Debug)]
pub(crate) struct Servers(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Number of threads that use them: each test has its own thread.
    users: usize,
    /// By major version; `None` is the first version that is found.
    servers: BTreeMap<Option<u32>, Arc<OnceCell<&'static EmbeddedServer>>>,
}

impl Servers {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State { users: 0, servers: BTreeMap::new() }))
    }

    /// The server of this version, started by `start` if necessary. It runs at least until the calling test
    /// has ended.
    pub(crate) async fn get(
        &'static self,
        version: Option<u32>,
        start: impl AsyncFnOnce() -> EmbeddedServer,
    ) -> &'static EmbeddedServer {
        User::register(self);
        let cell = Arc::clone(lock(&self.0).servers.entry(version).or_default());
        cell.get_or_init(async || &*Box::leak(Box::new(start().await))).await
    }

    /// Stops the servers if no thread uses them.
    fn retire(&self) {
        let mut state = lock(&self.0);
        if state.users == 0 {
            let servers = std::mem::take(&mut state.servers);
            servers.values().filter_map(|cell| cell.get().copied()).for_each(end);
        }
    }
}

/// A thread that uses the servers of a suite, until it ends or uses those of another suite.
struct User(&'static Servers);

thread_local! {
    static USER: RefCell<Option<User>> = const { RefCell::new(None) };
}

impl User {
    fn register(servers: &'static Servers) {
        let is_new = USER.with_borrow_mut(|user| {
            let is_new = user.as_ref().is_none_or(|user| !std::ptr::eq(user.0, servers));
            if is_new {
                lock(&servers.0).users += 1;
                *user = Some(Self(servers));
            }
            is_new
        });
        if is_new {
            let mut suites = lock(&SUITES);
            if !suites.iter().any(|suite| std::ptr::eq(*suite, servers)) {
                suites.push(servers);
            }
            suites.iter().filter(|suite| !std::ptr::eq(**suite, servers)).for_each(|suite| suite.retire());
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        lock(&self.0.0).users -= 1;
    }
}

/// Stops a server and removes its data, in the background. The rest of its directory is removed when this
/// process ends.
fn end(server: &'static EmbeddedServer) {
    std::thread::spawn(move || {
        if let Some(pid) = server.pid().and_then(Pid::from_raw) {
            // Fails only if it has already ended.
            let _ = kill_process(pid, Signal::QUIT);
        }
        let start = clock::monotonic();
        while server.pid().is_some() && start.elapsed() < TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = std::fs::remove_dir_all(server.socket_dir().join("data"));
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
