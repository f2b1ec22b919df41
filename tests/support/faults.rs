//! A server whose statements fail on request, by name: a message is recognized on its way to the server
//! ([`locktop::pg::sql`]) and replaced by one that the server rejects. The code of the error is changed to
//! the requested one on the way back.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::sql::named;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// Replaces a statement; the code of its error follows.
const MARK: &str = "locktop_fault_";

/// How a statement fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Timeout,
    Lock,
    Permission,
    WrongType,
    /// The connection ends when the statement is sent.
    Lost,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] =
        [Self::Timeout, Self::Lock, Self::Permission, Self::WrongType, Self::Lost];

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Timeout => Some("57014"),
            Self::Lock => Some("55P03"),
            Self::Permission => Some("42501"),
            Self::WrongType => Some("42804"),
            Self::Lost => None,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    faults: BTreeMap<&'static str, Fault>,
    sent: Vec<&'static str>,
}

/// A proxy with faults, until the runtime of the test ends.
#[derive(Debug)]
pub(crate) struct Faults {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Faults {
    pub(crate) async fn before(server: &EmbeddedServer) -> Self {
        let socket = server.socket_dir().join(".s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<Mutex<State>>::default();
        tokio::spawn(listen(listener, socket, Arc::clone(&state)));
        Self { port, state }
    }

    /// The connection string through the proxy, for a database and a role.
    pub(crate) fn info(&self, role: &str, database: &str) -> ConnInfo {
        let port = self.port;
        let text = format!("host=127.0.0.1 port={port} user={role} dbname={database} sslmode=disable");
        ConnInfo::parse(&text).unwrap()
    }

    /// Makes this statement fail from now on.
    pub(crate) fn fail(&self, statement: &'static str, fault: Fault) {
        self.state.lock().unwrap().faults.insert(statement, fault);
    }

    /// No statement fails from now on.
    pub(crate) fn heal(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    /// The names of the statements that were sent since the last call.
    pub(crate) fn sent(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state.lock().unwrap().sent)
    }
}

async fn listen(listener: TcpListener, socket: PathBuf, state: Arc<Mutex<State>>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(connection(client, socket.clone(), Arc::clone(&state)));
    }
}

async fn connection(mut client: TcpStream, socket: impl AsRef<Path>, state: Arc<Mutex<State>>) {
    let Ok(mut server) = UnixStream::connect(socket).await else { return };
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        () = ask(BufReader::new(from_client), to_server, &state) => {}
        () = answer(BufReader::new(from_server), to_client) => {}
    }
}

/// Forwards the client's messages; ends when the connection is to be lost.
async fn ask(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, state: &Mutex<State>) {
    let Some(startup) = body(&mut from).await else { return };
    if to.write_all(&framed(None, &startup)).await.is_err() {
        return;
    }
    let mut prepared = HashMap::new();
    loop {
        let Ok(kind) = from.read_u8().await else { return };
        let Some(body) = body(&mut from).await else { return };
        let Some(body) = changed(kind, body, &mut prepared, state) else { return };
        if to.write_all(&framed(Some(kind), &body)).await.is_err() {
            return;
        }
    }
}

/// The message to forward; `None` if the connection ends instead.
fn changed(
    kind: u8,
    body: Vec<u8>,
    prepared: &mut HashMap<Vec<u8>, &'static str>,
    state: &Mutex<State>,
) -> Option<Vec<u8>> {
    let text = |bytes: &[u8]| named(&String::from_utf8_lossy(bytes)).map(|statement| statement.name);
    let mut words = body.split(|byte| *byte == 0);
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // The part to replace: the statement, or the name of a prepared one.
    let (name, place) = match kind {
        b'Q' => (text(first), 0..first.len()),
        b'P' if first.is_empty() => (text(second), 1..1 + second.len()),
        b'P' => {
            prepared.extend(text(second).map(|name| (first.to_vec(), name)));
            (None, 0..0)
        }
        b'B' => {
            let place = first.len() + 1;
            (prepared.get(second).copied(), place..place + second.len())
        }
        _ => (None, 0..0),
    };
    let Some(name) = name else { return Some(body) };
    let mut state = state.lock().unwrap();
    state.sent.push(name);
    let Some(fault) = state.faults.get(name) else { return Some(body) };
    let fault = format!("{MARK}{}", fault.code()?);
    let mut changed = body;
    changed.splice(place, fault.into_bytes());
    Some(changed)
}

/// Forwards the server's messages.
async fn answer(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    loop {
        let Ok(kind) = from.read_u8().await else { return };
        let Some(body) = body(&mut from).await else { return };
        let body = if kind == b'E' { with_code(body) } else { body };
        if to.write_all(&framed(Some(kind), &body)).await.is_err() {
            return;
        }
    }
}

/// The error with the requested code.
fn with_code(body: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&body);
    let Some(at) = text.find(MARK) else { return body };
    let code = text[at + MARK.len()..][..5].to_owned();
    let mut error = Vec::new();
    for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        match field[0] {
            b'C' => error.extend(format!("C{code}\0").as_bytes()),
            b'M' => error.extend(format!("Mit fails by {code}\0").as_bytes()),
            b'P' => {}
            _ => error.extend([field, b"\0"].concat()),
        }
    }
    error.push(0);
    error
}

/// The body of a message, after its kind.
async fn body(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let length = usize::try_from(from.read_u32().await.ok()?).ok()?.checked_sub(4)?;
    let mut body = vec![0; length];
    from.read_exact(&mut body).await.ok()?;
    Some(body)
}

fn framed(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    kind.into_iter().chain(length).chain(body.iter().copied()).collect()
}
