//! The first connection: waits where waiting helps, and asks for a password where one is needed.

use std::time::Duration;

use super::password::{self, Prompt};
use crate::pg::connect::{Connection, connect};
use crate::pg::conninfo::ConnInfo;
use crate::pg::error::ConnectError;

const PAUSE: Duration = Duration::from_secs(1);

/// Opens a connection. A password that was typed is kept in `info`, for the connections that follow. While the
/// server has no connection left or is starting up or shutting down this waits; `say` is told so, once for each
/// reason.
///
/// # Errors
/// When the server cannot be reached or refuses for another reason, or nobody gives the password.
pub async fn open(
    info: &mut ConnInfo,
    prompt: Prompt,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Connection, ConnectError> {
    if prompt == Prompt::Always {
        *info = ask(info)?.ok_or_else(|| {
            ConnectError::Other("-W asks for a password, and there is no terminal to ask on".to_owned())
        })?;
    }
    let mut said = None;
    loop {
        match connect(info).await {
            Err(error) if error.is_waitable() => {
                let reason = error.sqlstate().map(str::to_owned);
                if said != reason {
                    say(&format!("{error}; waiting"));
                    said = reason;
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) if error.needs_password() && prompt == Prompt::IfNeeded => match ask(info)? {
                Some(asked) if asked.has_password() => *info = asked,
                _ => return Err(error),
            },
            done => return done,
        }
    }
}

fn ask(info: &ConnInfo) -> Result<Option<ConnInfo>, ConnectError> {
    match password::ask(info.user()) {
        Ok(secret) => Ok(secret.map(|secret| info.clone().with_password(secret))),
        Err(error) => Err(ConnectError::Other(format!("no password for \"{}\": {error}", info.user()))),
    }
}
