//! A network in front of a test server, which can drop traffic silently, be slow, reset connections, or end
//! one in the middle of a message.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use locktop::demo::postgres::EmbeddedServer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// The state of the network. Connections are numbered in the order in which they are made.
#[derive(Debug, Clone, Default)]
struct Network {
    /// Nothing is forwarded in either direction, and neither side is notified.
    silent: bool,
    /// Delays all data by this time.
    delay: Duration,
    /// The number of the next connection.
    next: u64,
    /// These connections stay silent for ever, as if a firewall has forgotten them.
    forgotten: Range<u64>,
    /// Connections before this one are reset.
    reset: u64,
    /// Connections before this one end in the middle of the server's next message.
    cut: u64,
    /// The test has ended.
    over: bool,
}

/// The proxy ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    network: Arc<watch::Sender<Network>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a new port, and forwards everything to the server.
    pub(crate) fn before(server: &EmbeddedServer) -> Self {
        let socket = server.socket_dir().join(".s.PGSQL.5432");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let network = Arc::new(watch::Sender::new(Network::default()));
        let control = Arc::clone(&network);
        // A separate runtime: the test waits without yielding.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let thread = std::thread::spawn(move || runtime.block_on(listen(listener, &socket, &control)));
        Self { port, network, thread: Some(thread) }
    }

    /// The connection string for the server's first database through the proxy.
    pub(crate) fn target(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres sslmode=disable", self.port)
    }

    fn change(&self, change: impl FnOnce(&mut Network)) {
        self.network.send_modify(change);
    }

    /// Forwards nothing from now on.
    pub(crate) fn fall_silent(&self) {
        self.change(|network| network.silent = true);
    }

    /// Forwards the data that was held back, and everything after it.
    pub(crate) fn resume(&self) {
        self.change(|network| network.silent = false);
    }

    /// The existing connections stay silent for ever; new ones work.
    pub(crate) fn forget(&self) {
        self.change(|network| network.forgotten = 0..network.next);
    }

    /// The same for one connection, by its number.
    pub(crate) fn forget_one(&self, number: u64) {
        self.change(|network| network.forgotten = number..number + 1);
    }

    /// Resets the existing connections.
    pub(crate) fn reset(&self) {
        self.change(|network| network.reset = network.next);
    }

    /// Ends the existing connections in the middle of the server's next message.
    pub(crate) fn cut(&self) {
        self.change(|network| network.cut = network.next);
    }

    /// Delays all data by this time.
    pub(crate) fn delay(&self, delay: Duration) {
        self.change(|network| network.delay = delay);
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.network.borrow().next
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|network| network.over = true);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn listen(listener: std::net::TcpListener, socket: &Path, network: &Arc<watch::Sender<Network>>) {
    let listener = TcpListener::from_std(listener).unwrap();
    let mut seen = network.subscribe();
    loop {
        tokio::select! {
            _ = seen.wait_for(|network| network.over) => return,
            client = listener.accept() => {
                let number = network.borrow().next;
                network.send_modify(|network| network.next += 1);
                tokio::spawn(connection(client.unwrap().0, socket.to_owned(), number, network.subscribe()));
            }
        }
    }
}

/// One connection, until either side or the network ends it.
async fn connection(mut client: TcpStream, socket: PathBuf, number: u64, network: watch::Receiver<Network>) {
    let Ok(mut server) = UnixStream::connect(socket).await else { return };
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let mut state = network.clone();
    let is_reset = tokio::select! {
        _ = state.wait_for(|network| number < network.reset) => true,
        () = pass(from_client, to_server, number, network.clone(), false) => false,
        () = pass(from_server, to_client, number, network, true) => false,
    };
    if is_reset {
        client.set_zero_linger().unwrap();
    }
}

/// Forwards data until the connection ends.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    number: u64,
    mut network: watch::Receiver<Network>,
    is_servers: bool,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await.unwrap_or_default();
        let passes = |network: &Network| !network.silent && !network.forgotten.contains(&number);
        let Ok(now) = network.wait_for(passes).await.map(|network| network.clone()) else { return };
        tokio::time::sleep(now.delay).await;
        let is_cut = is_servers && number < now.cut;
        let data = buffer.get(..if is_cut { count.div_ceil(2) } else { count }).unwrap_or_default();
        if data.is_empty() || to.write_all(data).await.is_err() || is_cut {
            return;
        }
    }
}
