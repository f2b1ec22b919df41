use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::time::Duration;

/// Lines that can wait for the disk. Further lines are dropped and counted.
const QUEUE: usize = 1024;

/// How long the exit waits for pending lines.
const TIMEOUT: Duration = Duration::from_millis(500);

enum Order {
    Line(String),
    /// Signals that everything before it is written.
    Flush(Sender<()>),
}

/// Dropping it waits for pending lines, up to `TIMEOUT`.
#[derive(Debug)]
pub(in crate::cli) struct Log {
    orders: SyncSender<Order>,
}

#[derive(Debug, Clone)]
pub(super) struct Sink {
    orders: SyncSender<Order>,
    lost: Arc<AtomicU64>,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Order")
    }
}

impl Log {
    /// Starts the thread that writes to `file`. Lines are sent through the returned sink.
    pub(super) fn start(file: impl Write + Send + 'static) -> io::Result<(Self, Sink)> {
        let (orders, received) = mpsc::sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let sink = Sink { orders: orders.clone(), lost: Arc::clone(&lost) };
        let serve = move || serve(file, &received, &lost);
        std::thread::Builder::new().name("log".to_owned()).spawn(serve)?;
        Ok((Self { orders }, sink))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let (done, wait) = mpsc::channel();
        // If the disk hangs and the queue is full, do not wait.
        if self.orders.try_send(Order::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(TIMEOUT);
        }
    }
}

impl Sink {
    /// Queues a line without waiting.
    pub(super) fn write(&self, line: String) {
        if self.orders.try_send(Order::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes each line in one call. Lines that cannot be written are dropped, and their count precedes the next line.
fn serve(mut file: impl Write, received: &Receiver<Order>, lost: &AtomicU64) {
    let mut is_torn = false;
    for order in received {
        match order {
            Order::Line(line) => {
                let missing = lost.swap(0, Ordering::Relaxed);
                let torn = if is_torn { "\n" } else { "" };
                let lost_lines = match missing {
                    0 => String::new(),
                    lines => format!("({lines} lines could not be written)\n"),
                };
                let text = format!("{torn}{lost_lines}{line}\n");
                let (written, done) = write(&mut file, text.as_bytes());
                if done {
                    is_torn = false;
                } else {
                    lost.fetch_add(missing + 1, Ordering::Relaxed);
                    is_torn |= written > 0;
                }
            }
            // The waiting thread may have timed out.
            Order::Flush(done) => drop(done.send(())),
        }
    }
}

/// Returns the bytes written, and whether that was all of them.
fn write(file: &mut impl Write, mut bytes: &[u8]) -> (usize, bool) {
    let mut written = 0;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return (written, false),
            Ok(count) => {
                written += count;
                bytes = bytes.get(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return (written, false),
        }
    }
    (written, true)
}
