use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

use pg_connect::message;

/// Resolves when the connection ends.
#[derive(Debug)]
pub(super) struct Link {
    driver: AbortHandle,
    pub(super) ended: watch::Receiver<Option<String>>,
}

impl Link {
    pub(super) fn watch(driver: JoinHandle<Result<(), tokio_postgres::Error>>) -> Self {
        let (sender, ended) = watch::channel(None);
        let abort = driver.abort_handle();
        tokio::spawn(async move {
            let reason = match driver.await {
                Ok(Err(error)) => message(&error),
                Ok(Ok(())) | Err(_) => "the server closed it".to_owned(),
            };
            sender.send(Some(reason))
        });
        Self { driver: abort, ended }
    }

    /// Otherwise a server that does not answer would keep the driver alive forever.
    pub(super) fn close(&self) {
        self.driver.abort();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}
