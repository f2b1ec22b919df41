//! Bytes of the server's responses are changed on the way: no change causes a panic or a wait longer than the
//! timeouts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures_util::StreamExt;
use locktop::clock;
use locktop::demo::postgres::{EmbeddedServer, Options};
use locktop::model::plan::{Client, ExpectedTime, RowTarget, SessionTarget, TargetKind, Verb};
use locktop::model::table_rows::Schedule;
use locktop::pg::conninfo::ConnInfo;
use locktop::pg::poll::{PollConnection, PollLimits, open_plain};
use locktop::schema::{self, SchemaName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::binary::{locktop, run_beside};
use crate::hands::{Hands, Line, Notes, command};
use crate::support::{TIMEOUT, conninfo, is_long, open};

/// Number of concurrent runs.
const AT_ONCE: usize = 8;
/// A run that takes longer hangs: it has a dozen steps, and the longest timeout among them is twelve seconds.
const LONGEST: Duration = Duration::from_secs(90);

/// Changes the server's bytes on one connection.
trait Garble: Send + 'static {
    fn garble(&mut self, bytes: &mut [u8]);
}

/// Flips one bit in a byte from time to time, after a number of unchanged bytes.
struct Flips {
    random: Rng,
    whole: u64,
    one_in: u64,
}

impl Flips {
    fn of(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let whole = [0, 0, 400, 2_000, 8_000, 20_000][random.usize(..6)];
        let one_in = [20, 100, 400, 1_500, 6_000][random.usize(..5)];
        Self { random, whole, one_in }
    }
}

impl Garble for Flips {
    fn garble(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.whole > 0 {
                self.whole -= 1;
            } else if self.random.u64(..self.one_in) == 0 {
                *byte ^= 1 << self.random.u64(..8);
            }
        }
    }
}

/// Replaces the second occurrence of a word by bytes that are no text.
struct Spoils {
    word: Vec<u8>,
    seen: usize,
    spoiled: Arc<AtomicUsize>,
}

impl Garble for Spoils {
    fn garble(&mut self, bytes: &mut [u8]) {
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(self.word.len()).position(|part| part == self.word) {
            let word = from + at..from + at + self.word.len();
            from = word.end;
            self.seen += 1;
            if self.seen == 2 {
                bytes[word].fill(0xff);
                self.spoiled.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Listens in a directory, and forwards all connections to a server.
fn proxy<G: Garble>(
    directory: &Path,
    server: &EmbeddedServer,
    mut garble: impl FnMut() -> G + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
    let socket = server.socket_dir().join(".s.PGSQL.5432");
    tokio::spawn(async move {
        let mut pairs = tokio::task::JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let Ok(behind) = UnixStream::connect(&socket).await else { return };
            pairs.spawn(pass(client, behind, garble()));
        }
    })
}

async fn pass(client: UnixStream, server: UnixStream, mut garble: impl Garble) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            garble.garble(&mut buffer[..read]);
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    // When one direction ends, both connections are closed.
    tokio::select! {
        () = back => {}
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
    }
}

/// The progress of a run: it opened a session, took a snapshot, got a connection to act on, printed.
type Progress = [bool; 4];

fn limits() -> PollLimits {
    PollLimits { poll_timeout: Duration::from_secs(2), ..PollLimits::default() }
}

/// Starts, polls, acts and prints, each on connections through the proxy.
async fn run(server: &EmbeddedServer, seed: u64, task: &RowTarget<Schedule>) -> Progress {
    let directory = tempfile::tempdir().unwrap();
    let mut number = 0;
    let proxy = proxy(directory.path(), server, move || {
        number += 1;
        Flips::of(seed << 8 | number)
    });
    let target =
        format!("host={} user=postgres dbname=garbled connect_timeout=2", directory.path().display());
    let info = ConnInfo::parse(&target).unwrap();
    let mut progress = [false; 4];
    if let Ok(mut session) = PollConnection::open(&info, limits()).await {
        progress[0] = true;
        let mut before = None;
        for _ in 0..5 {
            match session.poll(before.as_ref()).await {
                Ok(snapshot) => before = Some(snapshot),
                Err(_) => break,
            }
        }
        progress[1] = before.is_some();
    }
    if let Ok(connection) = open_plain(&info, &limits()).await {
        let line = Line { client: Arc::new(connection.client), pids: Vec::new() };
        let mut hands = Hands::with(line, Notes::default());
        let missing = SessionTarget {
            pid: 4_000_000,
            backend_start: task.next_run_at.unwrap(),
            client: Client::default(),
            xact_start: ExpectedTime::Any,
            query_start: ExpectedTime::Any,
            state_change: ExpectedTime::Any,
            holds: None,
            keeps: false,
            blocks: false,
        };
        let verb = if seed.is_multiple_of(2) { Verb::Enable } else { Verb::Disable };
        hands.act(command(verb, vec![TargetKind::Task(task.clone())])).await;
        hands.act(command(Verb::Terminate, vec![TargetKind::Session(missing)])).await;
        progress[2] = true;
    }
    let format = ["table", "json"][usize::try_from(seed % 2).unwrap()];
    let left = run_beside(locktop(&["snapshot", "--format", format, &target])).await;
    assert!(matches!(left.status, Some(0 | 1)), "seed {seed}: {left:?}");
    assert!(!left.err.contains("panicked") && left.err.lines().count() <= 1, "seed {seed}: {left:?}");
    progress[3] = left.status == Some(0);
    proxy.abort();
    progress
}

async fn garbled_server() -> (EmbeddedServer, RowTarget<Schedule>) {
    let server = EmbeddedServer::start(Options::default().with("max_connections", 200)).await.unwrap();
    let info = conninfo(&server);
    open(&info).await.client.batch_execute("CREATE DATABASE garbled").await.unwrap();
    let info = info.with_dbname("garbled");
    let mut connection = open(&info).await;
    schema::install(&mut connection.client, &SchemaName::default()).await.unwrap();
    let rows = "SET search_path = locktop;
        INSERT INTO scheduled_tasks (task_name, task_type, next_run_at) VALUES ('caf\u{e9}', 'x', '2100-01-01');
        INSERT INTO task_queue (task_name) VALUES ('a'), ('b'); SELECT FROM lease_acquire(7, 'node1', '1 hour');
        SELECT FROM try_acquire_task_lock(1, 'w')";
    connection.client.batch_execute(rows).await.unwrap();
    let sql = "SELECT 'locktop.scheduled_tasks'::regclass::oid, next_run_at FROM locktop.scheduled_tasks";
    let row = connection.client.query_one(sql, &[]).await.unwrap();
    let task = RowTarget {
        table: row.get(0),
        source: "locktop.scheduled_tasks".into(),
        is_own: true,
        row: Schedule {
            id: 1,
            name: Some("caf\u{e9}".into()),
            enabled: None,
            next_run_at: row.get(1),
            ..Schedule::default()
        },
    };
    (server, task)
}

/// Counts the panics from now on, in any thread or task.
fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::<AtomicUsize>::default();
    let before = std::panic::take_hook();
    let counting = Arc::clone(&count);
    std::panic::set_hook(Box::new(move |panic| {
        counting.fetch_add(1, Ordering::Relaxed);
        before(panic);
    }));
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout, reason = "the figures of a long run are worth keeping")]
async fn flipped_bytes_neither_panic_nor_hang() {
    let runs = if is_long() { 500 } else { 40 };
    let (server, task) = garbled_server().await;
    let (server, task) = (&server, &task);
    let panics = count_panics();
    let all = futures_util::stream::iter(0..runs).map(|seed| async move {
        let start = clock::monotonic();
        let progress = tokio::time::timeout(LONGEST, run(server, seed, task)).await;
        let progress = progress.unwrap_or_else(|_| panic!("seed {seed} hangs"));
        (progress, clock::monotonic().duration_since(start))
    });
    let (mut count, mut longest) = ([0; 4], Duration::ZERO);
    let mut all = std::pin::pin!(all.buffer_unordered(AT_ONCE));
    while let Some((progress, took)) = all.next().await {
        for (count, done) in count.iter_mut().zip(progress) {
            *count += u32::from(done);
        }
        longest = longest.max(took);
    }
    println!("{runs} runs: opened, polled, acted, printed: {count:?}; the longest took {longest:?}");
    assert_eq!(panics.load(Ordering::Relaxed), 0);
    // Flips are rare enough for each step to succeed in some runs, and frequent enough for it to fail in
    // others.
    assert!(count.iter().all(|count| (1..u32::try_from(runs).unwrap()).contains(count)), "{count:?}");
}

/// The response to the first query is no text: the program continues without it.
#[tokio::test]
async fn a_version_that_is_no_text_is_none() {
    let (server, _) = garbled_server().await;
    let client = open(&conninfo(&server)).await.client;
    let version: String = client.query_one("SHOW server_version", &[]).await.unwrap().get(0);
    let directory = tempfile::tempdir().unwrap();
    let spoiled = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&spoiled);
    let proxy = proxy(directory.path(), &server, move || Spoils {
        word: version.clone().into_bytes(),
        seen: 0,
        spoiled: Arc::clone(&count),
    });
    let target = format!("host={} user=postgres dbname=garbled", directory.path().display());
    let start: Instant = clock::monotonic();
    let left = run_beside(locktop(&["snapshot", &target])).await;
    assert_eq!((left.status, left.err.as_str()), (Some(0), ""), "{left:?}");
    assert_eq!(spoiled.load(Ordering::Relaxed), 1, "after {:?}", start.elapsed());
    assert!(start.elapsed() < TIMEOUT);
    proxy.abort();
}
