//! Counts the bytes that a server sends.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A socket in front of the server's own: all traffic passes through it and is counted.
pub(crate) struct Meter {
    directory: PathBuf,
    sent: Arc<AtomicUsize>,
}

impl Meter {
    /// Listens in a new directory below that of the server's socket.
    pub(crate) fn before(server: &Path) -> Self {
        let directory = server.join("meter");
        std::fs::create_dir(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        let (socket, sent) = (server.join(".s.PGSQL.5432"), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&sent);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = UnixStream::connect(&socket).unwrap();
                pass(client.try_clone().unwrap(), server.try_clone().unwrap(), None);
                pass(server, client, Some(Arc::clone(&counted)));
            }
        });
        Self { directory, sent }
    }

    /// The connection string that leads through the meter.
    pub(crate) fn conninfo(&self, conninfo: &str, server: &Path) -> String {
        conninfo.replace(&server.display().to_string(), &self.directory.display().to_string())
    }

    /// Bytes that the server has sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Meter {
    /// For root, the server runs as another account, which removes its own files but is not permitted to remove this
    /// directory.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Forwards all bytes until the connection ends.
fn pass(mut from: UnixStream, mut to: UnixStream, counter: Option<Arc<AtomicUsize>>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 256 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if let Some(counter) = &counter {
                counter.fetch_add(count, Ordering::Relaxed);
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
