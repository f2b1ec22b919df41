//! A server whose statements fail one by one, by name: a message is recognized on its way ([`locktop::pg::sql`]), and in its place one
//! arrives that the server refuses. The error has the code that is wanted when it comes back.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use locktop::demo::postgres::EmbeddedServer;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::sql::named;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// In place of a statement; the code of its error follows.
const MARK: &str = "locktop_fault_";

/// How a statement fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Timeout,
    Lock,
    Permission,
    WrongType,
    /// The connection ends when it is sent.
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

/// It ends with the runtime of the test.
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

    /// The way through it to a database, for a role.
    pub(crate) fn info(&self, role: &str, database: &str) -> ConnInfo {
        let port = self.port;
        let text = format!("host=127.0.0.1 port={port} user={role} dbname={database} sslmode=disable");
        ConnInfo::parse(&text).unwrap()
    }

    /// From now on this statement fails so.
    pub(crate) fn fail(&self, statement: &'static str, fault: Fault) {
        self.state.lock().unwrap().faults.insert(statement, fault);
    }

    /// From now on none fails.
    pub(crate) fn heal(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    /// The statements that were sent since the last question, by name.
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

/// Passes on what the client sends; ends when the connection is to be lost.
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

/// A message as it is passed on; None when the connection ends in its place.
fn changed(
    kind: u8,
    body: Vec<u8>,
    prepared: &mut HashMap<Vec<u8>, &'static str>,
    state: &Mutex<State>,
) -> Option<Vec<u8>> {
    let text = |bytes: &[u8]| named(&String::from_utf8_lossy(bytes)).map(|statement| statement.name);
    let mut words = body.split(|byte| *byte == 0);
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // What is replaced: the statement, or the name of one that is prepared.
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

/// Passes on what the server says.
async fn answer(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    loop {
        let Ok(kind) = from.read_u8().await else { return };
        let Some(body) = body(&mut from).await else { return };
        let body = if kind == b'E' { told(body) } else { body };
        if to.write_all(&framed(Some(kind), &body)).await.is_err() {
            return;
        }
    }
}

/// An error with the code that is wanted.
fn told(body: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&body);
    let Some(at) = text.find(MARK) else { return body };
    let code = text[at + MARK.len()..][..5].to_owned();
    let mut told = Vec::new();
    for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        match field[0] {
            b'C' => told.extend(format!("C{code}\0").as_bytes()),
            b'M' => told.extend(format!("Mit fails by {code}\0").as_bytes()),
            b'P' => {}
            _ => told.extend([field, b"\0"].concat()),
        }
    }
    told.push(0);
    told
}

/// What follows the kind of a message.
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
