//! The second connection: open from the start, so that it is there when all connections are taken. Actions use it,
//! and between them names of advisory keys are read on it ([`super::learn`]). Each sends whole transactions in one
//! message: none is ever open between two messages, so that nobody's statement ends up in another's. Whether the
//! connection can be had or not never disturbs the poll.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::live::Backoff;
use crate::pg::connect::Connection;
use crate::pg::conninfo::ConnInfo;
use crate::pg::poll::{Limits, open_plain};

/// What the keeper has.
type Slot = Option<Result<Arc<Client>, String>>;

/// Keeps a connection open, and opens it again when it is lost.
#[derive(Debug)]
pub struct Spare {
    slot: watch::Receiver<Slot>,
    keeper: JoinHandle<()>,
}

impl Spare {
    /// Opens the connection in the background.
    #[must_use]
    pub fn keep(info: ConnInfo, limits: Limits) -> Self {
        let (sender, slot) = watch::channel(None);
        Self { slot, keeper: tokio::spawn(keep(info, limits, sender)) }
    }

    /// The connection. Waits while it is being opened, for at most `patience`.
    ///
    /// # Errors
    /// Why there is none at the moment, in one line.
    pub async fn client(&self, patience: Duration) -> Result<Arc<Client>, String> {
        let mut slot = self.slot.clone();
        let waited = tokio::time::timeout(patience, slot.wait_for(|slot| usable(slot).is_some())).await;
        if let Ok(Ok(slot)) = waited
            && let Some(client) = usable(&slot)
        {
            return Ok(client);
        }
        match &*self.slot.borrow() {
            Some(Err(reason)) => Err(reason.clone()),
            _ => Err("the server does not answer".into()),
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

fn usable(slot: &Slot) -> Option<Arc<Client>> {
    slot.as_ref()?.as_ref().ok().filter(|client| !client.is_closed()).map(Arc::clone)
}

async fn keep(info: ConnInfo, limits: Limits, slot: watch::Sender<Slot>) {
    let mut backoff = Backoff::default();
    loop {
        match open_plain(&info, &limits).await {
            Ok(Connection { client, driver }) => {
                backoff = Backoff::default();
                let _ = slot.send(Some(Ok(Arc::new(client))));
                let reason = match driver.await {
                    Ok(Err(error)) => error.to_string(),
                    Ok(Ok(())) | Err(_) => "the connection was closed".into(),
                };
                let _ = slot.send(Some(Err(reason)));
            }
            Err(error) => {
                let _ = slot.send(Some(Err(error.to_string())));
            }
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}
