use super::password::{self, Prompt};
use pg_connect::conninfo::{ConnInfo, Secret};
use pg_connect::error::ConnectError;

/// Asks for the password before the first connection (`-W`). It is used for all connections.
///
/// # Errors
/// There is no terminal, or it fails.
pub(super) fn ask_first(info: ConnInfo, prompt: Prompt) -> Result<ConnInfo, ConnectError> {
    if prompt != Prompt::Always {
        return Ok(info);
    }
    ask(&info, None)?.ok_or_else(|| {
        ConnectError::Other("-W asks for a password, and there is no terminal to ask on".to_owned())
    })
}

/// Asks for the password because the server requires one and none was found. `None` if a password would not help.
///
/// # Errors
/// The terminal fails.
pub(super) fn ask_after(
    info: &ConnInfo,
    prompt: Prompt,
    error: &ConnectError,
) -> Result<Option<ConnInfo>, ConnectError> {
    if prompt == Prompt::Never {
        return Ok(None);
    }
    if let Some(key) = error.needs_key_password() {
        let what = format!("the key {}", key.display());
        return Ok(ask_for(&what, None)?.map(|secret| info.clone().with_key_password(secret)));
    }
    if prompt != Prompt::IfNeeded || !error.needs_password() {
        return Ok(None);
    }
    Ok(ask(info, error.password_note())?.filter(ConnInfo::has_password))
}

fn ask(info: &ConnInfo, note: Option<&str>) -> Result<Option<ConnInfo>, ConnectError> {
    let secret = ask_for(&format!("user {}", info.user()), note)?;
    Ok(secret.map(|secret| info.clone().with_password(secret)))
}

fn ask_for(what: &str, note: Option<&str>) -> Result<Option<Secret>, ConnectError> {
    password::ask(what, note).map_err(|error| {
        ConnectError::Other(format!("no password for {}: {error}", crate::text::one_line(what)))
    })
}
